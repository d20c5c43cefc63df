"""What every object carries: metadata, owner references, conditions, and the base of all API structs."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import msgspec

Time: TypeAlias = str
"""An RFC 3339 instant, kept as text; `dray.api.times` parses and formats it."""

Json: TypeAlias = dict[str, Any]
"""An API object as plain JSON. What travels between components, so that unknown fields survive."""

RESOURCE_GROUP = "resource.k8s.io"


class ApiStruct(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    rename="camel",
    gc=False,
    forbid_unknown_fields=False,
):
    """Base of all typed API values: immutable, camelCase in JSON, empty fields left out."""


class GroupVersionKind(NamedTuple):
    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


class ObjectKey(NamedTuple):
    """Names an object within one resource; `namespace` is empty for cluster-scoped ones."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class OwnerReference(ApiStruct, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ManagedFieldsEntry(ApiStruct, frozen=True):
    manager: str = ""
    operation: str = ""
    api_version: str = ""
    time: Time | None = None
    fields_type: str = ""
    fields_v1: msgspec.Raw | None = msgspec.field(default=None, name="fieldsV1")
    subresource: str = ""


class ObjectMeta(ApiStruct, frozen=True):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    self_link: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()
    managed_fields: tuple[ManagedFieldsEntry, ...] = ()

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.namespace, self.name)


class Condition(ApiStruct, frozen=True):
    type: str = ""
    status: str = ""
    observed_generation: int = 0
    last_transition_time: Time | None = None
    reason: str = ""
    message: str = ""
