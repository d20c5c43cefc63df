"""The shape of every kind that the server knows: fields, list keys and merge strategies, read from `schemas.json`.

The file holds the OpenAPI v3 schemas that Kubernetes publishes for these kinds, plus the fields that only dray has.
`type_of(group, version, kind)` turns one into a tree that patches, server-side apply, strict decoding and
`kubectl explain` walk; nothing else in the server knows fields by name.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final, TypeAlias

import msgspec
import yaml

from dray.api.meta import Json

REFERENCE: Final = "#/components/schemas/"
META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."

_GO_PACKAGES: Final = {
    "": "core",
    "batch": "batch",
    "coordination.k8s.io": "coordination",
    "events.k8s.io": "events",
    "rbac.authorization.k8s.io": "rbac",
    "authorization.k8s.io": "authorization",
    "authentication.k8s.io": "authentication",
    "policy": "policy",
    "resource.k8s.io": "resource",
}


@dataclass(frozen=True, slots=True)
class Scalar:
    """A leaf. `name` is string, int32, int64, number, boolean, quantity, time, micro-time, bytes or int-or-string."""

    name: str


@dataclass(frozen=True, slots=True)
class Anything:
    """JSON that the server doesn't look into (opaque parameters, fieldsV1)."""


@dataclass(frozen=True, slots=True)
class MapOf:
    value: Node
    atomic: bool


@dataclass(frozen=True, slots=True)
class ListOf:
    item: Node
    type: str
    """atomic, set or map, as `x-kubernetes-list-type` says."""
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a struct, with what a strategic merge patch needs to know of it."""

    type: Node
    required: bool
    default: Any
    merge: bool
    merge_key: str
    retain_keys: bool


@dataclass(frozen=True, slots=True)
class Struct:
    name: str
    atomic: bool

    @property
    def fields(self) -> dict[str, Field]:
        return _fields_of(self.name)

    @property
    def short_name(self) -> str:
        return self.name.rpartition(".")[2]


Node: TypeAlias = Scalar | Anything | MapOf | ListOf | Struct

ANYTHING: Final = Anything()

_SPECIAL: Final[dict[str, Node]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": Scalar("quantity"),
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": Scalar("int-or-string"),
    "io.k8s.apimachinery.pkg.runtime.RawExtension": ANYTHING,
    f"{META}FieldsV1": ANYTHING,
    f"{META}Time": Scalar("time"),
    f"{META}MicroTime": Scalar("micro-time"),
}


class UnknownType(KeyError):
    """No schema has this name."""


@functools.cache
def definitions() -> dict[str, Json]:
    """All schemas by their Kubernetes name."""
    data = resources.files("dray.apiserver").joinpath("schemas.json").read_bytes()
    loaded: dict[str, Json] = msgspec.json.decode(data)
    return loaded


@functools.cache
def described_definitions() -> dict[str, Json]:
    """The same with texts for people, as `kubectl explain` shows them."""
    data = resources.files("dray.apiserver").joinpath("descriptions.yaml").read_bytes()
    texts: dict[str, str] = yaml.load(data, Loader=yaml.CSafeLoader)
    return {name: _described(schema, name.rpartition(".")[2], texts) for name, schema in definitions().items()}


def _described(schema: Json, name: str, texts: dict[str, str]) -> Json:
    result = dict(schema)
    if name in texts:
        result["description"] = texts[name]
    if "properties" in schema:
        result["properties"] = {
            field: {**part, "description": texts[f"{name}.{field}"]} if f"{name}.{field}" in texts else part
            for field, part in schema["properties"].items()
        }
    return result


def definition_name(group: str, version: str, kind: str) -> str:
    return f"io.k8s.api.{_GO_PACKAGES[group]}.{version}.{kind}"


@functools.cache
def type_of(group: str, version: str, kind: str) -> Struct:
    name = definition_name(group, version, kind)
    if name not in definitions():
        raise UnknownType(name)
    return Struct(name, atomic=False)


@functools.cache
def meta_type(kind: str) -> Struct:
    """A type of meta.k8s.io, such as DeleteOptions."""
    return Struct(META + kind, atomic=False)


@functools.cache
def _fields_of(name: str) -> dict[str, Field]:
    schema = definitions()[name]
    required = frozenset(schema.get("required", ()))
    return {field: _field(part, field in required) for field, part in schema.get("properties", {}).items()}


def _field(schema: Json, required: bool) -> Field:
    strategies = schema.get("x-kubernetes-patch-strategy", "").split(",")
    return Field(
        type=_node(schema),
        required=required,
        default=schema.get("default"),
        merge="merge" in strategies,
        merge_key=schema.get("x-kubernetes-patch-merge-key", ""),
        retain_keys="retainKeys" in strategies,
    )


def _node(schema: Json) -> Node:
    if "allOf" in schema:
        return _node(schema["allOf"][0])
    if "$ref" in schema:
        return _referenced(schema["$ref"].removeprefix(REFERENCE))
    match schema.get("type"):
        case "array":
            keys = tuple(schema.get("x-kubernetes-list-map-keys", ()))
            return ListOf(_node(schema["items"]), schema.get("x-kubernetes-list-type", "atomic"), keys)
        case "object" if "additionalProperties" in schema:
            return MapOf(_node(schema["additionalProperties"]), schema.get("x-kubernetes-map-type") == "atomic")
        case "string" if schema.get("format") == "byte":
            return Scalar("bytes")
        case "integer":
            return Scalar(schema.get("format", "int64"))
        case "string" | "number" | "boolean" as name:
            return Scalar(name)
        case _:
            return ANYTHING


def _referenced(name: str) -> Node:
    special = _SPECIAL.get(name)
    if special is not None:
        return special
    schema = definitions()[name]
    if "properties" not in schema:
        return _node(schema)
    return Struct(name, atomic=schema.get("x-kubernetes-map-type") == "atomic")
