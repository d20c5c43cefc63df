"""Typed views of kinds that dray only reads: Pod, Node, Job and others.

A view is made from an object's JSON, holds the fields that somebody decides on, and is never written back: changes go
through patches, so that fields which the view doesn't know are never lost.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from dray.api.meta import ApiStruct, Json, ObjectKey, OwnerReference
from dray.api.quantities import InvalidQuantity, Quantity

ViewT = TypeVar("ViewT", bound=ApiStruct)

ResourceList = dict[str, Quantity]
"""Amounts by resource name, such as `cpu`."""


class InvalidView(ValueError):
    """An object isn't shaped as its kind says; the message names the object and the place in it."""


class ViewMeta(ApiStruct, frozen=True):
    """What readers need of an object's metadata."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.namespace, self.name)

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages the object, if there is one."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class MetaView(ApiStruct, frozen=True):
    """An object of any kind, without its content."""

    metadata: ViewMeta = ViewMeta()


class ViewCondition(ApiStruct, frozen=True):
    type: str = ""
    status: str = ""
    observed_generation: int = 0
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


def find_condition(conditions: tuple[ViewCondition, ...], type_: str) -> ViewCondition | None:
    return next((condition for condition in conditions if condition.type == type_), None)


def view_meta(obj: Json) -> MetaView:
    """Raises InvalidView."""
    return view_as(obj, MetaView)


def view_as(obj: Json, cls: type[ViewT]) -> ViewT:
    """Read an object as `cls`; unknown fields are ignored, null means absent. Raises InvalidView."""
    try:
        return msgspec.convert(obj, cls, dec_hook=_decode)
    except msgspec.ValidationError:
        # Nulls are rare, and looking for them costs more than the conversion: only when it failed.
        try:
            return msgspec.convert(_without_nulls(obj), cls, dec_hook=_decode)
        except msgspec.ValidationError as error:
            raise InvalidView(f"{cls.__name__} {_describe(obj)}: {error}") from error


def _decode(type_: type, value: object) -> Any:
    if type_ is not Quantity:
        raise NotImplementedError(f"no view has a field of type {type_.__name__}")
    if isinstance(value, str):
        return Quantity.parse(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Quantity.parse(repr(value))
    raise InvalidQuantity(f"want a quantity, got {type(value).__name__}")


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value if item is not None]
    return value


def _describe(obj: object) -> str:
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    if not isinstance(metadata, dict):
        return "without metadata"
    return str(ObjectKey(str(metadata.get("namespace") or ""), str(metadata.get("name") or "")))
