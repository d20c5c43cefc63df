"""Problems of manifests, as lines for people: where, of which object, which field, why."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from dray.api import exact
from dray.api.exact import DecodeError
from dray.cli.sources import BrokenDocument, ManifestObject
from dray.validation.fields import FieldError

_STEP: Final = re.compile(r"\[([^\]]*)\]|([^.\[]+)")
_WRONG_TYPE: Final = re.compile(r"json: cannot unmarshal (\w+)(?: (\S+))? into Go .* of type (\S+)")
_FOUND: Final = {"string": "text", "bool": "true or false", "array": "a list", "object": "an object"}
_EXPECTED: Final = {"string": "text", "bool": "true or false"}


class Finding(NamedTuple):
    """One problem."""

    source: str
    line: int
    subject: str
    field: str
    reason: str

    def __str__(self) -> str:
        return ": ".join(filter(None, (f"{self.source}:{self.line}", self.subject, self.field, _one_line(self.reason))))


def _one_line(reason: str) -> str:
    """Without the picture of the place that errors of expressions draw."""
    return " ".join(line.strip() for line in reason.splitlines() if not line.startswith(" |"))


def find_at(obj: ManifestObject, path: exact.Path, reason: str, *, show_field: bool = True) -> Finding:
    field = exact.format_path(path) if show_field else ""
    return Finding(obj.source, obj.line_of(path), str(obj), field, reason)


def find_broken_document(document: BrokenDocument) -> Finding:
    return Finding(document.source, document.line, "", "", document.reason)


def find_undecodable(obj: ManifestObject, error: Exception) -> Finding:
    """Why the object can't be read."""
    if isinstance(error, DecodeError):
        return find_at(obj, error.path, _plain(error.message))
    return find_at(obj, (), str(error))


def find_broken_rules(obj: ManifestObject, errors: Iterable[FieldError]) -> Iterator[Finding]:
    for error in errors:
        yield Finding(obj.source, obj.line_of(parse_field(error.field)), str(obj), error.field, error.message)


def parse_field(field: str) -> exact.Path:
    """`spec.devices[0].attributes[a.b/c]` as a path."""
    return tuple(
        (int(bracket) if bracket.isascii() and bracket.isdigit() else bracket) if name is None else name
        for bracket, name in ((match[1], match[2]) for match in _STEP.finditer(field))
    )


def _plain(message: str) -> str:
    """The decoder speaks of Go's types, as Kubernetes does. Here nobody has to know them."""
    if (wrong := _WRONG_TYPE.fullmatch(message)) is None:
        return message
    found, value, go_type = wrong.groups()
    shown = f"the number {value}" if value else _FOUND.get(found, f"a {found}")
    hint = "; in YAML, text that looks like something else needs quotes" if go_type == "string" and not value else ""
    return f"expected {_expected(go_type)}, found {shown}{hint if found in ('number', 'bool') else ''}"


def _expected(go_type: str) -> str:
    if go_type.startswith(("int", "uint")):
        return "a whole number"
    if go_type.startswith("float"):
        return "a number"
    return _EXPECTED.get(go_type) or ("a list" if go_type.startswith("[]") else "an object")
