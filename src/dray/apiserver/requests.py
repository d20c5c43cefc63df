"""A request as the registry sees it: who asks for what, taken apart from the HTTP path and query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qs, unquote

from dray.apiserver.users import Attributes, UserInfo

_VERBS: Final = {
    "GET": "get",
    "HEAD": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_NAMESPACE_SUBRESOURCES: Final = frozenset({"status", "finalize"})
"""`/namespaces/NAME/status` is a subresource of the namespace, and not a resource in it."""


@dataclass(frozen=True, slots=True)
class RequestInfo:
    """The parts of a path. `resource` is empty for discovery, health and the like."""

    verb: str
    path: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    extra_path: tuple[str, ...] = ()
    """What follows the subresource; nothing that we serve has it."""

    @property
    def is_resource_request(self) -> bool:
        return bool(self.resource)

    def attributes(self, user: UserInfo, query: Query) -> Attributes:
        """What an authorizer is asked."""
        return Attributes(
            user=user,
            verb=self.verb,
            group=self.group,
            version=self.version,
            resource=self.resource,
            subresource=self.subresource,
            namespace=self.namespace,
            name=self.name,
            field_selector=query.text("fieldSelector"),
            label_selector=query.text("labelSelector"),
            path=self.path,
        )


class Query:
    """The query string; a parameter's first value counts, as in Kubernetes."""

    __slots__ = ("_values",)

    def __init__(self, text: str = "") -> None:
        # A bound on the number of fields keeps a hostile query cheap; no client comes near it.
        self._values = parse_qs(text, keep_blank_values=True, max_num_fields=100) if text else {}

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def text(self, name: str) -> str:
        values = self._values.get(name)
        return values[0] if values else ""

    def texts(self, name: str) -> list[str]:
        return self._values.get(name, [])

    def flag(self, name: str) -> bool:
        """As Kubernetes converts strings to bool: absent, `false` and `0` are false, everything else is true."""
        return name in self._values and self._values[name][0].lower() not in ("false", "0")


@dataclass(frozen=True, slots=True)
class ApiRequest:
    method: str
    info: RequestInfo
    query: Query
    user: UserInfo
    headers: Mapping[str, str] = field(default_factory=dict)
    """Names in lower case."""
    body: bytes = b""

    def header(self, name: str) -> str:
        return self.headers.get(name, "")


def parse_request(method: str, raw_path: str, query: Query) -> RequestInfo:
    """Take a path apart as Kubernetes does. `raw_path` is still percent-encoded."""
    parts = [unquote(part) for part in raw_path.strip("/").split("/") if part]
    verb = method.lower()
    match parts:
        case ["api", version, *rest] if rest:
            group = ""
        case ["apis", group, version, *rest] if rest:
            pass
        case _:
            return RequestInfo(verb=verb, path=raw_path)
    verb = _VERBS.get(method, verb)
    if rest[0] == "watch" and len(rest) > 1:  # the deprecated way to ask for a watch
        verb, rest = "watch", rest[1:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in _NAMESPACE_SUBRESOURCES:
            rest = rest[2:]
    resource, name, subresource = [*rest, "", "", ""][:3]
    if not name:
        verb = _collection_verb(verb, query)
        name = _name_in_selector(query.text("fieldSelector")) if verb in ("list", "watch", "deletecollection") else ""
    return RequestInfo(
        verb=verb,
        path=raw_path,
        group=group,
        version=version,
        resource=resource,
        subresource=subresource,
        namespace=namespace,
        name=name,
        extra_path=tuple(rest[3:]),
    )


def _collection_verb(verb: str, query: Query) -> str:
    match verb:
        case "get":
            return "watch" if query.flag("watch") else "list"
        case "delete":
            return "deletecollection"
        case _:
            return verb


def _name_in_selector(selector: str) -> str:
    """A list by `metadata.name=x` is authorized as one for that name."""
    for part in selector.split(","):
        label, separator, value = part.partition("=")
        if label == "metadata.name" and separator:
            return value.removeprefix("=")
    return ""
