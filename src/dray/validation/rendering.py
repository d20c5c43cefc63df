"""How a bad value is shown in a message: quoted text, plain numbers, JSON for everything else.

Kubernetes shows two kinds of JSON. Declarative rules see the object as it was sent, and so does the reader of the
message. Handwritten rules see the server's internal types, whose fields bear their Go names and are never left out;
`internal_form` makes that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from dray.api.claims import DeviceConstraint
from dray.api.codec import encode
from dray.api.meta import NO_RAW, ObjectMeta
from dray.api.quantities import Quantity
from dray.api.quoting import quote, quote_json

__all__ = ["JsonText", "internal_form", "quote", "render_value"]

_GO_NAMES: Final = {"cel": "CEL", "ips": "IPs", "uid": "UID", "share_id": "ShareID", "api_group": "APIGroup"}
"""Names that aren't the capitalised form of ours."""


class JsonText(str):
    """A text of one of Kubernetes' own string types, which messages show as JSON."""

    __slots__ = ()


def render_value(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case JsonText():
            return quote_json(value)
        case str():
            return quote(value)
        case _:
            return _as_json(value)


def internal_form(value: Any) -> Any:
    """The value as a handwritten rule of Kubernetes shows it."""
    match value:
        case Quantity():
            return str(value)
        case msgspec.Raw():
            return None if value == NO_RAW else msgspec.Raw(value)
        case ObjectMeta():
            return msgspec.to_builtins(value, enc_hook=str)
        case msgspec.Struct():
            return _internal_struct(value)
        case tuple() if hasattr(value, "_asdict"):
            return {_go_name(name): internal_form(item) for name, item in value._asdict().items()}
        case tuple():
            return [internal_form(item) for item in value] or None
        case dict():
            return {key: internal_form(value[key]) for key in sorted(value)} or None
        case _:
            return value


def _internal_struct(value: msgspec.Struct) -> dict[str, Any]:
    form: dict[str, Any] = {}
    for name in value.__struct_fields__:
        item = getattr(value, name)
        if item is None and isinstance(value, DeviceConstraint) and name == "cel":
            continue  # ours, not Kubernetes'
        if isinstance(item, ObjectMeta):
            # Embedded in its struct, so its fields stand beside the others.
            form |= internal_form(item)
        else:
            form[_go_name(name)] = internal_form(item)
    return form


def _go_name(name: str) -> str:
    return _GO_NAMES.get(name) or "".join(part.capitalize() for part in name.split("_"))


_ENCODER: Final = msgspec.json.Encoder(enc_hook=str)
_HTML: Final[Mapping[int, str]] = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}
"""Go's JSON is safe to put into a web page."""


def _as_json(value: object) -> str:
    data = encode(_with_sorted_maps(value)) if isinstance(value, msgspec.Struct) else _ENCODER.encode(value)
    return data.decode("utf-8", "replace").translate(_HTML)


def _with_sorted_maps(value: Any) -> Any:
    """Go writes maps in the order of their keys."""
    match value:
        case msgspec.Struct():
            return replace(value, **{name: _with_sorted_maps(getattr(value, name)) for name in value.__struct_fields__})
        case dict():
            return {key: _with_sorted_maps(value[key]) for key in sorted(value)}
        case tuple() if value:
            return tuple(map(_with_sorted_maps, value))
        case _:
            return value
