"""What every object carries: metadata, owner references, conditions, and the base of all API structs."""

from __future__ import annotations

from typing import Annotated, Any, Final, NamedTuple, TypeAlias, TypeVar

import msgspec

_INSTANT = (
    r"^(?!0000|0001-01-01T00:00:00)[0-9]{4}-"
    r"(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
    r"T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z\Z"
)

Time: TypeAlias = Annotated[str, msgspec.Meta(pattern=_INSTANT)]
"""An RFC 3339 instant in UTC and whole seconds, kept as text; `dray.api.times` parses and formats it.

The pattern holds for what is stored; the decoder accepts every spelling that Kubernetes does and normalises it.
"""

Int64: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Int32: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]

Json: TypeAlias = dict[str, Any]
"""An API object as plain JSON. What travels between components, so that unknown fields survive."""

RESOURCE_GROUP = "resource.k8s.io"

T = TypeVar("T")


def written(value: T) -> T:
    """Default of a field that Kubernetes writes even when it is empty (in Go: no `omitempty`, or a struct).

    msgspec leaves out a field that holds its default, but never one whose default comes from a factory.
    """
    field: Any = msgspec.field(default_factory=lambda: value)
    return field  # type: ignore[no-any-return]


class _Nil(tuple[Any, ...]):
    """The type of `NIL`; there is one instance, also after copying and pickling."""

    __slots__ = ()

    def __reduce__(self) -> str:
        return "NIL"


NIL: Final[tuple[Any, ...]] = _Nil()
"""An absent list where Kubernetes tells it from an empty one: written as `null`. Equals `()`."""

NO_RAW: Final = msgspec.Raw(b"null")
"""An absent raw JSON value. Compare with `==`."""


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
    api_version: str = written("")
    kind: str = written("")
    name: str = written("")
    uid: str = written("")
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ManagedFieldsEntry(ApiStruct, frozen=True):
    manager: str = ""
    operation: str = ""
    api_version: str = ""
    time: Time | None = None
    fields_type: str = ""
    fields_v1: msgspec.Raw = msgspec.field(default=NO_RAW, name="fieldsV1")
    subresource: str = ""


class ObjectMeta(ApiStruct, frozen=True):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    self_link: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    deletion_grace_period_seconds: Int64 | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()
    managed_fields: tuple[ManagedFieldsEntry, ...] = ()

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.namespace, self.name)


class Condition(ApiStruct, frozen=True):
    type: str = written("")
    status: str = written("")
    observed_generation: Int64 = 0
    last_transition_time: Time | None = written(None)
    reason: str = written("")
    message: str = written("")


class ShardInfo(ApiStruct, frozen=True):
    selector: str = written("")


class ListMeta(ApiStruct, frozen=True):
    self_link: str = ""
    resource_version: str = ""
    continue_token: str = msgspec.field(default="", name="continue")
    remaining_item_count: Int64 | None = None
    shard_info: ShardInfo | None = None
