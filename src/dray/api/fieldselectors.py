"""Field selectors (`spec.nodeName=n1,metadata.name!=x`): parsing, which fields each kind offers, and matching."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from dray.api.meta import RESOURCE_GROUP, Json
from dray.api.quoting import quote
from dray.api.text_cache import cached_by_text

_TERM: Final = re.compile(r"(?:\\.|[^,])*", re.DOTALL)
_OPERATOR: Final = re.compile("!=|==|=")
_ESCAPED: Final = re.compile(r"[\\,=]")


class InvalidFieldSelector(ValueError):
    """The text is no field selector, or the kind doesn't have the field; the message is Kubernetes'."""


class FieldRequirement(NamedTuple):
    field: str
    value: str
    negated: bool = False

    def __str__(self) -> str:
        operator = "!=" if self.negated else "="
        return self.field + operator + _ESCAPED.sub(r"\\\g<0>", self.value)


class FieldSelector(NamedTuple):
    """Requirements that must all hold."""

    requirements: tuple[FieldRequirement, ...] = ()

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))

    def matches(self, fields: Mapping[str, str]) -> bool:
        """Whether the fields are as required; a field that isn't there counts as empty."""
        return all((fields.get(field, "") == value) is not negated for field, value, negated in self.requirements)

    def exact_value(self, field: str) -> str | None:
        """The value that the field must have, if there is only one."""
        for requirement in self.requirements:
            if requirement.field == field and not requirement.negated:
                return requirement.value
        return None

    def matches_object(self, obj: Json) -> bool:
        if not self.requirements:
            return True
        return self.matches(
            {requirement.field: field_value(obj, requirement.field) for requirement in self.requirements}
        )


@cached_by_text
def parse_field_selector(text: str) -> FieldSelector:
    """Read a selector; the empty text selects everything. Raises InvalidFieldSelector."""
    requirements = []
    for term in sorted(_split(text)):
        if not term:
            continue
        operator = _OPERATOR.search(term)
        if operator is None:
            raise InvalidFieldSelector(f"invalid selector: '{text}'; can't understand '{term}'")
        value = _unescape(term[operator.end() :])
        requirements.append(FieldRequirement(term[: operator.start()], value, operator[0] == "!="))
    return FieldSelector(tuple(requirements))


def _split(text: str) -> list[str]:
    """At commas that no backslash protects."""
    terms = []
    position = 0
    while True:
        found = _TERM.match(text, position)
        end = found.end() if found is not None else position
        terms.append(text[position:end])
        if end >= len(text):
            return terms
        position = end + 1


def _unescape(value: str) -> str:
    if _ESCAPED.search(value) is None:
        return value
    plain = []
    characters = iter(value)
    for character in characters:
        if character == "\\":
            escaped = next(characters, "")
            if escaped not in ("\\", ",", "="):
                raise InvalidFieldSelector(f"invalid field selector: invalid escape sequence: \\{escaped}")
            plain.append(escaped)
        elif character in ",=":
            # Kubernetes names the character by its number here.
            raise InvalidFieldSelector(f"invalid field selector: unescaped character in value: {ord(character)}")
        else:
            plain.append(character)
    return "".join(plain)


_COMMON: Final = ("metadata.name", "metadata.namespace")
_EVENT_OBJECT: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_FIELDS: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("", "Pod"): (
        *_COMMON,
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
    ),
    ("", "Node"): ("metadata.name", "spec.unschedulable"),
    ("", "Namespace"): ("metadata.name", "status.phase"),
    ("", "Secret"): (*_COMMON, "type"),
    ("", "Service"): (*_COMMON, "spec.clusterIP", "spec.type"),
    ("", "Event"): (
        *_COMMON,
        *(f"involvedObject.{name}" for name in _EVENT_OBJECT),
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    ("batch", "Job"): (*_COMMON, "status.successful"),
    (RESOURCE_GROUP, "ResourceSlice"): ("metadata.name", "spec.nodeName", "spec.driver", "spec.pool.name"),
}
"""Kinds that offer other fields than the common two."""


def check_field_selector(selector: FieldSelector, api_version: str, kind: str) -> FieldSelector:
    """The selector with the names of fields as they are today. Raises InvalidFieldSelector for unknown fields."""
    group = api_version.rpartition("/")[0]
    requirements = []
    for requirement in selector.requirements:
        if (group, kind, requirement.field) == ("", "Pod", "spec.host"):
            requirement = requirement._replace(field="spec.nodeName")
        if requirement.field not in _FIELDS.get((group, kind), _COMMON):
            raise InvalidFieldSelector(_unsupported(requirement.field, api_version, group, kind))
        requirements.append(requirement)
    return FieldSelector(tuple(requirements))


def _unsupported(field: str, api_version: str, group: str, kind: str) -> str:
    if (group, kind) not in _FIELDS:
        return f"{quote(field)} is not a known field selector: only {', '.join(map(quote, _COMMON))}"
    if group == "":
        return f"field label not supported: {field}"
    if group == "batch":
        return f"field label {quote(field)} not supported for {kind}"
    return f"field label not supported for {api_version}, Kind={kind}: {field}"


def field_value(obj: Json, field: str) -> str:
    """The selectable field of an object as text: absent is empty, except that switches are `false`."""
    match field:
        case "spec.unschedulable" | "spec.hostNetwork":
            return "true" if _lookup(obj, field) is True else "false"
        case "status.podIP":
            addresses = _lookup(obj, "status.podIPs")
            first = addresses[0] if isinstance(addresses, list) and addresses else {}
            return str(first.get("ip") or "")
        case "status.podIPs":
            return ""  # accepted, but never set: Kubernetes offers the first address only
        case "reportingComponent":
            return str(_lookup(obj, field) or "")
        case "source":
            return str(_lookup(obj, "source.component") or _lookup(obj, "reportingComponent") or "")
        case "status.successful":
            return str(_lookup(obj, "status.succeeded") or 0)
        case _:
            return str(_lookup(obj, field) or "")


def _lookup(obj: Json, path: str) -> Any:
    value: Any = obj
    for step in path.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(step)
    return value
