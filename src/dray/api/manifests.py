"""Manifests: YAML or JSON text as documents that know on which line each of their fields stands.

YAML is read as `kubectl` reads it: `yes`, `on` and `y` are booleans, dates are text, keys become strings, and JSON is
recognised by its first character. Beyond that, duplicate keys are errors, and so are aliases that multiply.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from dray.api.exact import Path, locate
from dray.api.json_syntax import JsonSyntaxError, check_syntax, end_of_value, read_value
from dray.api.yaml_nodes import InvalidYaml, Node, read_nodes

MAX_YAML_DOCUMENT: Final = 3 * 1024 * 1024
"""In characters: what Kubernetes accepts as one object. In memory, YAML takes many times its size."""

_BEFORE_JSON: Final = re.compile(r"(?:\s|^---)*(?=\S)", re.MULTILINE)
_DOCUMENT_START: Final = re.compile(r"^(?=---(?:\s|$))", re.MULTILINE)


class ManifestError(ValueError):
    """The text of a document can't be read; `line` counts from 1."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


class Document(Protocol):
    """One document of a manifest."""

    @property
    def value(self) -> Any:
        """The content as plain JSON."""

    @property
    def text(self) -> bytes:
        """The content as JSON text; of a JSON document, the text as it was written."""

    def line_of(self, path: Path) -> int:
        """The line of a field, or of the closest part of the way to it that exists."""


Part: TypeAlias = Document | ManifestError


def iter_documents(text: str) -> Iterator[Part]:
    """The documents of a manifest, empty ones left out. One that can't be read comes as the error it causes."""
    if text.lstrip()[:1] == "{":
        yield from _iter_json(text)
    else:
        yield from _iter_yaml(text, 1)


def _iter_json(text: str) -> Iterator[Part]:
    """JSON objects one after the other, with or without `---` between them."""
    at = 0
    while (before := _BEFORE_JSON.match(text, at)) is not None:
        start = before.end()
        line = text.count("\n", 0, start) + 1
        try:
            at = end_of_value(text, start)
        except (ValueError, RecursionError):
            yield from _iter_odd_json(text[start:], line)
            return
        yield _read_json(text[start:at], line)


def _read_json(text: str, line: int) -> Part:
    try:
        return JsonDocument(text, read_value(text), line)
    except JsonSyntaxError as error:
        return _syntax_error(error, line)


def _iter_odd_json(text: str, line: int) -> Iterator[Part]:
    """YAML in braces is no JSON but still readable; if it isn't that either, the JSON error is the better one."""
    parts = list(_iter_yaml(text, line))
    if not any(isinstance(part, ManifestError) for part in parts):
        yield from parts
        return
    try:
        check_syntax(text)
    except JsonSyntaxError as error:
        yield _syntax_error(error, line)


def _syntax_error(error: JsonSyntaxError, line: int) -> ManifestError:
    return ManifestError(f"not valid JSON: {error.reason} (column {error.column})", line + error.line - 1)


def _iter_yaml(text: str, line: int) -> Iterator[Part]:
    """Documents are cut apart first, so that an error in one doesn't hide the next."""
    for chunk in _DOCUMENT_START.split(text):
        yield from _read_yaml(chunk, line)
        line += chunk.count("\n")


def _read_yaml(text: str, line: int) -> Iterator[Part]:
    if len(text) > MAX_YAML_DOCUMENT:
        size, limit = len(text) / 1024 / 1024, MAX_YAML_DOCUMENT / 1024 / 1024
        yield ManifestError(f"a YAML document of {size:.1f} MiB; at most {limit:.0f} MiB are read", line)
        return
    try:
        for node in read_nodes(text):
            if node.value is not None:
                yield YamlDocument(node, line)
    except InvalidYaml as error:
        yield ManifestError(f"not valid YAML: {error}", line + error.line)


@dataclass(frozen=True)
class JsonDocument:
    source: str
    value: Any
    first_line: int

    @property
    def text(self) -> bytes:
        return self.source.encode("utf-8", "replace")

    def line_of(self, path: Path) -> int:
        return self.first_line + self.source.count("\n", 0, locate(self.source, path))


@dataclass(frozen=True)
class YamlDocument:
    root: Node
    first_line: int

    @property
    def value(self) -> Any:
        return self.root.value

    @property
    def text(self) -> bytes:
        return msgspec.json.encode(self.root.value)

    def line_of(self, path: Path) -> int:
        node, line = self.root, self.root.line
        for part in path:
            match node.members:
                case dict() as members if str(part) in members:
                    node, line = members[str(part)], node.key_lines[str(part)]
                case list() as items if isinstance(part, int) and part < len(items):
                    node = items[part]
                    line = node.line
        return self.first_line + line
