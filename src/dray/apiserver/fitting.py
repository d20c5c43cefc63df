"""JSON of the kinds that the server merely carries, fitted to their schema: types checked, unknown fields dropped.

What Kubernetes leaves out when it writes an object (null, empty lists and maps in optional fields) is left out here,
so that two ways to say nothing are stored as one.
"""

from __future__ import annotations

import base64
import binascii
import functools
from typing import Any, Final, assert_never

from dray.api.meta import Json
from dray.api.quantities import Quantity
from dray.api.times import InvalidTime, canonical_time, format_micro_time, parse_time
from dray.apiserver.schemas import Anything, ListOf, MapOf, Node, Scalar, Struct

_RANGES: Final = {"int32": 1 << 31, "int64": 1 << 63}
_NULL_TIMES: Final = {
    "PodCondition": ("lastProbeTime", "lastTransitionTime"),
    "NodeCondition": ("lastHeartbeatTime", "lastTransitionTime"),
    "NamespaceCondition": ("lastTransitionTime",),
    "JobCondition": ("lastProbeTime", "lastTransitionTime"),
    "ContainerStateRunning": ("startedAt",),
    "ContainerStateTerminated": ("startedAt", "finishedAt"),
}
"""Times that Kubernetes writes as null when they are absent."""

_GO_TYPES: Final = {"boolean": "bool", "number": "float64", "time": "v1.Time", "bytes": "[]uint8"}


class DoesNotFit(ValueError):
    """A value has the wrong type; the text is the one that clients know from Kubernetes."""


def fit_object(obj: Json, schema: Struct, unknown: list[str], fitted: Json | None = None) -> Json:
    """A copy of `obj` that fits. Paths of unknown fields are appended to `unknown`. Raises DoesNotFit.

    Parts that `obj` shares with `fitted`, which fits already, are taken over as they are.
    """
    return _fit_struct(obj, schema, "", unknown, fitted)


def _fit_struct(value: Json, schema: Struct, path: str, unknown: list[str], fitted: Json | None = None) -> Json:
    fields = schema.fields
    result: Json = {}
    for name, member in value.items():
        before = None if fitted is None else fitted.get(name)
        if before is member and member is not None:
            result[name] = member
            continue
        field = fields.get(name)
        if type(member) is str and field is not None and type(field.type) is Scalar and field.type.name == "string":
            result[name] = member  # by far the most members
            continue
        place = f"{path}.{name}" if path else name
        if field is None:
            unknown.append(place)
            continue
        if member is None and not field.required:
            continue
        if isinstance(field.type, Struct) and isinstance(member, dict):
            result[name] = _fit_struct(member, field.type, place, unknown, before)
            continue
        fit = _fit(member, field.type, place, schema.short_name, unknown)
        if fit or field.required or not isinstance(fit, dict | list) or isinstance(field.type, Struct | Anything):
            result[name] = fit
    for name, zero in _always_written(schema):
        if name not in result:
            result[name] = _fresh(zero)
    return result


def _fresh(zero: Any) -> Any:
    """Defaults are filled in there, so nobody may share it."""
    return {name: _fresh(inner) for name, inner in zero.items()} if isinstance(zero, dict) else zero


@functools.cache
def _always_written(schema: Struct) -> tuple[tuple[str, Any], ...]:
    """Fields that Kubernetes writes even if they are absent, with what it writes: structs, and required scalars."""
    written: list[tuple[str, Any]] = [(name, None) for name in _NULL_TIMES.get(schema.short_name, ())]
    for name, field in schema.fields.items():
        if isinstance(field.type, Struct) and field.default == {}:
            written.append((name, dict(_always_written(field.type))))
        elif field.required and isinstance(field.type, Scalar) and field.default is not None:
            written.append((name, field.default))
    return tuple(written)


def _fit(value: Any, schema: Node, path: str, owner: str, unknown: list[str]) -> Any:
    if value is None:
        return None
    match schema:
        case Scalar():
            return _fit_scalar(value, schema.name, path, owner)
        case Struct():
            if isinstance(value, dict):
                return _fit_struct(value, schema, path, unknown)
        case ListOf():
            if isinstance(value, list):
                item = schema.item
                return [_fit(each, item, f"{path}[{at}]", owner, unknown) for at, each in enumerate(value)]
        case MapOf():
            if isinstance(value, dict):
                kind = schema.value
                return {key: _fit(each, kind, f"{path}.{key}", owner, unknown) for key, each in value.items()}
        case Anything():
            return value
        case _:
            assert_never(schema)
    raise _mismatch(value, schema, path, owner)


def _fit_scalar(value: Any, name: str, path: str, owner: str) -> Any:
    match name, value:
        case "string", str():
            return value
        case "boolean", bool():
            return value
        case "int32" | "int64", int() if type(value) is int and -_RANGES[name] <= value < _RANGES[name]:
            return value
        case "number", int() | float() if not isinstance(value, bool):
            return value
        case "int-or-string", int() | str() if not isinstance(value, bool):
            return value
        case "quantity", str() | int() | float() if not isinstance(value, bool):
            return _quantity(value)
        case "time" | "micro-time", str():
            return _time(value, name)
        case "bytes", str():
            return _bytes(value)
        case _:
            raise _mismatch(value, Scalar(name), path, owner)


def _quantity(value: str | float) -> str:
    try:
        return str(Quantity.parse(str(value)))
    except ValueError as error:
        raise DoesNotFit(str(error)) from error


def _time(value: str, name: str) -> str:
    try:
        return canonical_time(value) if name == "time" else format_micro_time(parse_time(value))
    except InvalidTime as error:
        raise DoesNotFit(str(error)) from error


def _bytes(value: str) -> str:
    try:
        base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise DoesNotFit(f"illegal base64 data: {error}") from error
    return value


def _mismatch(value: Any, schema: Node, path: str, owner: str) -> DoesNotFit:
    place = "".join(part for part in _without_indices(path))
    return DoesNotFit(
        f"json: cannot unmarshal {_json_type(value)} into Go struct field {owner}.{place} of type {_go_type(schema)}"
    )


def _without_indices(path: str) -> list[str]:
    kept, depth = [], 0
    for char in path:
        depth += char == "["
        if not depth:
            kept.append(char)
        depth -= char == "]"
    return kept


def _json_type(value: Any) -> str:
    match value:
        case bool():
            return "bool"
        case str():
            return "string"
        case int() | float():
            return f"number {value}" if not isinstance(value, int) or abs(value) >= 1 << 31 else "number"
        case list():
            return "array"
        case _:
            return "object"


def _go_type(schema: Node) -> str:
    match schema:
        case Scalar():
            return _GO_TYPES.get(schema.name, schema.name)
        case Struct():
            return f"v1.{schema.short_name}"
        case ListOf():
            return f"[]{_go_type(schema.item)}"
        case MapOf():
            return f"map[string]{_go_type(schema.value)}"
        case Anything():
            return "runtime.RawExtension"
