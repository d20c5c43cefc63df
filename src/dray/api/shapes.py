"""The structs as the exact decoder sees them: fields by JSON name, with the names that Go gives to their types.

Go's type names are part of the error messages that users of Kubernetes know: `json: cannot unmarshal string into Go
struct field ExactDeviceRequest.spec.devices.requests.exactly.count of type int64`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from types import UnionType
from typing import Any, Final, TypeAlias, Union, get_args, get_origin

import msgspec

from dray.api.devices import DeviceAttribute, DeviceCapacity
from dray.api.meta import Int32, Int64, Time
from dray.api.quantities import Quantity


@dataclass(frozen=True, slots=True)
class Text:
    go: str = "string"


@dataclass(frozen=True, slots=True)
class Boolean:
    go: str = "bool"


@dataclass(frozen=True, slots=True)
class Integer:
    bits: int
    go: str


@dataclass(frozen=True, slots=True)
class Instant:
    go: str = "v1.Time"


@dataclass(frozen=True, slots=True)
class Amount:
    go: str = "resource.Quantity"


@dataclass(frozen=True, slots=True)
class RawValue:
    go: str = "runtime.RawExtension"


@dataclass(frozen=True, slots=True)
class Pointer:
    """A value that may be absent: `null` makes it None, whereas elsewhere `null` means the zero value."""

    to: Shape

    @property
    def go(self) -> str:
        return f"*{self.to.go}"


@dataclass(frozen=True, slots=True)
class ListOf:
    item: Shape
    go: str


@dataclass(frozen=True, slots=True)
class MapOf:
    item: Shape
    go: str


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """A struct. `fields` maps JSON names to attribute and shape.

    `inlined` are objects whose fields count as the record's own. `shorthand` is the field that a value which isn't an
    object stands for. Both serve spellings of the KEPs that Kubernetes doesn't read.
    """

    make: Any
    name: str
    go: str
    fields: dict[str, tuple[str, Shape]]
    inlined: dict[str, dict[str, tuple[str, Shape]]]
    shorthand: tuple[str, Shape] | None


Shape: TypeAlias = Text | Boolean | Integer | Instant | Amount | RawValue | Pointer | ListOf | MapOf | Record

_FOREIGN: Final = {"dray.api.meta": "v1", "dray.api.nodeselectors": "v1"}
"""Go packages of structs that don't belong to resource.k8s.io."""

_GO_NAMES: Final[dict[tuple[str, str], str]] = {
    ("OwnerReference", "uid"): "types.UID",
    ("ObjectMeta", "uid"): "types.UID",
    ("ManagedFieldsEntry", "operation"): "v1.ManagedFieldsOperationType",
    ("Condition", "status"): "v1.ConditionStatus",
    ("NodeSelectorRequirement", "operator"): "v1.NodeSelectorOperator",
    ("DeviceTaint", "effect"): "~.DeviceTaintEffect",
    ("DeviceToleration", "effect"): "~.DeviceTaintEffect",
    ("DeviceToleration", "operator"): "~.DeviceTolerationOperator",
    ("ExactDeviceRequest", "allocationMode"): "~.DeviceAllocationMode",
    ("DeviceRequest", "allocationMode"): "~.DeviceAllocationMode",
    ("DeviceSubRequest", "allocationMode"): "~.DeviceAllocationMode",
    ("DeviceDerivedAttribute", "name"): "~.FullyQualifiedName",
    ("DeviceConstraint", "matchAttribute"): "~.FullyQualifiedName",
    ("DeviceConstraint", "distinctAttribute"): "~.FullyQualifiedName",
    ("ResourceSliceSpec", "partitionTypeAttribute"): "~.FullyQualifiedName",
    ("ResourceSliceSpec", "skipNodeOperations"): "~.SkipNodeOperation",
    ("DeviceRequestAllocationResult", "skipNodeOperations"): "~.SkipNodeOperation",
    ("DeviceRequestAllocationResult", "shareID"): "types.UID",
    ("AllocatedDeviceStatus", "shareID"): "types.UID",
    ("ResourceClaimConsumerReference", "uid"): "types.UID",
    ("DeviceAllocationConfiguration", "source"): "~.AllocationConfigSource",
    ("NodeAllocatableMapping", "capacityKey"): "~.QualifiedName",
}
"""Named types of strings; `~` is the package of the version."""

_GO_KEYS: Final[dict[tuple[str, str], str]] = {
    ("Device", "attributes"): "~.QualifiedName",
    ("Device", "capacity"): "~.QualifiedName",
    ("BasicDevice", "attributes"): "~.QualifiedName",
    ("BasicDevice", "capacity"): "~.QualifiedName",
    ("Device", "nodeAllocatableResources"): "v1.ResourceName",
    ("BasicDevice", "nodeAllocatableResources"): "v1.ResourceName",
    ("CapacityRequirements", "requests"): "~.QualifiedName",
    ("DeviceRequestAllocationResult", "consumedCapacity"): "~.QualifiedName",
}
"""Named types of map keys; the others are strings."""

_SCALARS: Final[dict[Any, Shape]] = {
    bool: Boolean(),
    Int64: Integer(64, "int64"),
    Int32: Integer(32, "int32"),
    Time: Instant(),
    Quantity: Amount(),
    msgspec.Raw: RawValue(),
}


@cache
def record_of(cls: Any, version: str, early: bool) -> Record:
    """The record of a struct class, or of `ObjectList[...]`, in a version such as `v1beta1`.

    With `early`, the spellings of the KEPs are known too: `list: {int: [...]}` of attributes (KEP-5491), and capacities
    that are plain quantities (KEP-4381, up to v1beta1).
    """
    origin = get_origin(cls) or cls
    name = origin.__name__ if origin is cls else f"{get_args(cls)[0].__name__}List"
    fields: dict[str, tuple[str, Shape]] = {}
    for info in msgspec.structs.fields(cls):
        place = (name, info.encode_name)
        shape = _shape(info.type, version, early, _GO_NAMES.get(place, "string"), _GO_KEYS.get(place, "string"))
        fields[info.encode_name] = (info.name, shape)
    inlined: dict[str, dict[str, tuple[str, Shape]]] = {}
    shorthand: tuple[str, Shape] | None = None
    if early and origin is DeviceAttribute:
        inlined["list"] = {kind: fields[f"{kind}s"] for kind in ("int", "bool", "string", "version")}
    if early and origin is DeviceCapacity and version in ("v1beta1", "v1alpha3"):
        shorthand = fields["value"]
    package = _FOREIGN.get(origin.__module__, version)
    return Record(origin, name, f"{package}.{name}", fields, inlined, shorthand)


def _shape(annotation: Any, version: str, early: bool, text: str, key: str) -> Shape:
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    if annotation is str:
        return Text(text.replace("~", version))
    arguments = get_args(annotation)
    match get_origin(annotation):
        case origin if origin in (Union, UnionType):
            (inner,) = (argument for argument in arguments if argument is not type(None))
            return Pointer(_shape(inner, version, early, text, key))
        case origin if origin is tuple:
            item = _shape(arguments[0], version, early, text, key)
            return ListOf(item, f"[]{item.go}")
        case origin if origin is dict:
            item = _shape(arguments[1], version, early, text, key)
            return MapOf(item, f"map[{key.replace('~', version)}]{item.go}")
        case _:
            return record_of(annotation, version, early)
