"""The exact decoder: reads JSON into structs the way Kubernetes' own decoder does, message for message.

The fast decoder (msgspec) accepts the well-formed common case; everything else comes here: explicit nulls, numbers as
quantities, times that aren't in their stored form, wrong types, unknown and duplicate fields. As in Go

- `null` means the zero value, or an absent one where the field is a pointer;
- the first wrong type is reported after the whole text was read, a bad quantity or time at once;
- a field that comes twice is read into what the first one left.

The text is checked for syntax before it is walked, so the walk itself can take the grammar for granted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias, assert_never

import msgspec

from dray.api.json_syntax import JsonSyntaxError, check_syntax, end_of_value, read_string
from dray.api.meta import NO_RAW
from dray.api.quantities import InvalidQuantity, Quantity
from dray.api.quoting import quote
from dray.api.shapes import Amount, Boolean, Instant, Integer, ListOf, MapOf, Pointer, RawValue, Record, Shape, Text
from dray.api.times import InvalidTime, canonical_time

Path: TypeAlias = tuple[str | int, ...]

MAX_STRICT_ERRORS: Final = 100

_SPACE: Final = re.compile(r"[ \t\n\r]*")
_WHOLE: Final = re.compile(r"-?[0-9]{1,19}\Z")
_KINDS: Final = {'"': "string", "{": "object", "[": "array", "t": "bool", "f": "bool"}
_ZERO_TIME: Final = "0001-01-01T00:00:00Z"
_ABSENT: Final[Any] = object()


class DecodeError(ValueError):
    """The data isn't an object of a known kind. `path` leads to the field at fault, if it is a field."""

    def __init__(self, message: str, path: Path = ()) -> None:
        super().__init__(message)
        self.message = message
        self.path = path

    @property
    def field(self) -> str:
        return format_path(self.path)


class InvalidSyntax(DecodeError):
    """The text isn't JSON; `line` and `column` count from 1."""

    def __init__(self, error: JsonSyntaxError) -> None:
        super().__init__(f"couldn't get version/kind; json parse error: {error.reason}")
        self.line = error.line
        self.column = error.column


def format_path(path: Path) -> str:
    """`("spec", "devices", 0, "name")` as `spec.devices[0].name`."""
    text = ""
    for part in path:
        match part:
            case int():
                text += f"[{part}]"
            case str():
                text += f".{part}" if text else part
    return text


@dataclass(frozen=True, slots=True)
class Reading:
    """A struct, and what strict field validation has against the text: unknown and duplicate fields."""

    value: Any
    strict_errors: list[StrictError]


class StrictError(str):
    """An unknown or duplicate field, as Kubernetes words it; `path` leads to it."""

    path: Path

    def __new__(cls, what: str, path: Path) -> StrictError:
        error = super().__new__(cls, f"{what} field {quote(format_path(path))}")
        error.path = path
        return error


def read_exactly(text: str, record: Record) -> Reading:
    """Read `text` as the struct that `record` describes; raises DecodeError."""
    try:
        check_syntax(text)
    except JsonSyntaxError as error:
        raise InvalidSyntax(error) from None
    walk = _Walk(text)
    start = _skip_space(text, 0)
    value, _ = walk.value(record, start, _Where(), _ABSENT)
    if walk.first_error is not None:
        raise walk.first_error
    return Reading(walk.zero(record) if value is _ABSENT else value, list(walk.strict_errors))


def _skip_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return at if match is None else match.end()


@dataclass(frozen=True, slots=True)
class _Where:
    """Where a value stands: the path, and as Go's messages tell it, the innermost struct and the names of fields."""

    path: Path = ()
    owner: str = ""
    names: tuple[str, ...] = ()

    def enter_field(self, owner: str, name: str) -> _Where:
        return _Where((*self.path, name), owner, (*self.names, name))

    def enter(self, part: str | int) -> _Where:
        return replace(self, path=(*self.path, part))


@dataclass(slots=True)
class _Walk:
    text: str
    first_error: DecodeError | None = None
    strict_errors: dict[StrictError, None] = field(default_factory=dict)

    def value(self, shape: Shape, at: int, where: _Where, previous: Any) -> tuple[Any, int]:
        """The value that begins at `at`, and where it ends. `_ABSENT` for null and for a value of the wrong type."""
        first = self.text[at]
        if first == "n" and not isinstance(shape, Amount | RawValue):
            return (None if isinstance(shape, Pointer) else _ABSENT), at + 4
        match shape:
            case Pointer(to):
                return self.value(to, at, where, previous)
            case Record() if first == "{":
                return self._record(shape, at, where, previous)
            case Record(shorthand=(attribute, item)) if first in '"-0123456789':
                value, end = self.value(item, at, where, _ABSENT)
                return shape.make(**{attribute: value}), end
            case ListOf(item) if first == "[":
                return self._list(item, at, where)
            case MapOf(item) if first == "{":
                return self._map(item, at, where, previous)
            case Text() if first == '"':
                return self._string(at)
            case Boolean() if first in "tf":
                return first == "t", at + (4 if first == "t" else 5)
            case Integer(bits) if first in "-0123456789":
                return self._integer(bits, shape.go, at, where)
            case Amount():
                return self._quantity(at, where)
            case Instant():
                return self._instant(at, where)
            case RawValue():
                end = self._end(at)
                literal = self.text[at:end]
                return (NO_RAW if literal == "null" else msgspec.Raw(literal.encode())), end
            case _:
                self._save_wrong_type(_KINDS.get(first, "number"), shape.go, where)
                return _ABSENT, self._end(at)

    def zero(self, shape: Shape) -> Any:
        """What Go leaves in a list or map where the text has null."""
        match shape:
            case Record():
                return shape.make()
            case ListOf():
                return ()
            case MapOf():
                return {}
            case Text():
                return ""
            case Boolean():
                return False
            case Integer():
                return 0
            case Amount():
                return Quantity.ZERO
            case RawValue():
                return NO_RAW
            case Pointer() | Instant():
                return None
            case _:
                assert_never(shape)

    def _record(self, record: Record, at: int, where: _Where, previous: Any) -> tuple[Any, int]:
        values: dict[str, Any] = {}
        if isinstance(previous, msgspec.Struct):
            values = {name: getattr(previous, name) for name in previous.__struct_fields__}
        end = self._fields(record, record.fields, values, at, where)
        return record.make(**values), end

    def _fields(
        self, record: Record, fields: dict[str, tuple[str, Shape]], values: dict[str, Any], at: int, where: _Where
    ) -> int:
        seen = set()
        for key, start in (members := _Members(self.text, at)):
            if (known := fields.get(key)) is not None:
                attribute, shape = known
                inside = where.enter_field(record.name, key)
                if key in seen:
                    self._save_strict("duplicate", inside.path)
                seen.add(key)
                value, members.end = self.value(shape, start, inside, values.get(attribute, _ABSENT))
                if value is not _ABSENT:
                    values[attribute] = value
            elif (inner := record.inlined.get(key)) is not None and self.text[start] == "{":
                members.end = self._fields(record, inner, values, start, where.enter_field(record.name, key))
            else:
                self._save_strict("unknown", (*where.path, key))
                members.end = self._end(start)
        return members.end

    def _map(self, item: Shape, at: int, where: _Where, previous: Any) -> tuple[dict[str, Any], int]:
        values: dict[str, Any] = dict(previous) if isinstance(previous, dict) else {}
        seen = set()
        for key, start in (members := _Members(self.text, at)):
            inside = where.enter(key)
            if key in seen:
                self._save_strict("duplicate", inside.path)
            seen.add(key)
            value, members.end = self.value(item, start, inside, _ABSENT)
            values[key] = self.zero(item) if value is _ABSENT else value
        return values, members.end

    def _list(self, item: Shape, at: int, where: _Where) -> tuple[tuple[Any, ...], int]:
        values: list[Any] = []
        at = _skip_space(self.text, at + 1)
        while self.text[at] != "]":
            value, end = self.value(item, at, where.enter(len(values)), _ABSENT)
            values.append(self.zero(item) if value is _ABSENT else value)
            at = _skip_space(self.text, end)
            if self.text[at] == ",":
                at = _skip_space(self.text, at + 1)
        return tuple(values), at + 1

    def _string(self, at: int) -> tuple[str, int]:
        return read_string(self.text, at)

    def _integer(self, bits: int, go: str, at: int, where: _Where) -> tuple[Any, int]:
        end = self._end(at)
        literal = self.text[at:end]
        limit = 1 << (bits - 1)
        if _WHOLE.match(literal) and -limit <= int(literal) < limit:
            return int(literal), end
        self._save_wrong_type(f"number {literal}", go, where)
        return _ABSENT, end

    def _quantity(self, at: int, where: _Where) -> tuple[Quantity, int]:
        end = self._end(at)
        try:
            return Quantity.parse_json(self.text[at:end]), end
        except InvalidQuantity as error:
            raise DecodeError(str(error), where.path) from None

    def _instant(self, at: int, where: _Where) -> tuple[str | None, int]:
        if self.text[at] != '"':
            kind = _KINDS.get(self.text[at], "number")
            raise DecodeError(f"json: cannot unmarshal {kind} into Go value of type string", where.path)
        text, end = self._string(at)
        try:
            instant = canonical_time(text)
        except InvalidTime as error:
            raise DecodeError(str(error), where.path) from None
        return (None if instant == _ZERO_TIME else instant), end

    def _end(self, at: int) -> int:
        return end_of_value(self.text, at)

    def _save_wrong_type(self, kind: str, go: str, where: _Where) -> None:
        if self.first_error is None:
            place = f"struct field {where.owner}.{'.'.join(where.names)}" if where.names else "value"
            self.first_error = DecodeError(f"json: cannot unmarshal {kind} into Go {place} of type {go}", where.path)

    def _save_strict(self, what: str, path: Path) -> None:
        if len(self.strict_errors) < MAX_STRICT_ERRORS:
            self.strict_errors[StrictError(what, path)] = None


class _Members:
    """The keys of an object, each with the place of its value; whoever reads a value sets `end` to where it ends."""

    def __init__(self, text: str, at: int) -> None:
        self._text = text
        self.end = self.key_at = at

    def __iter__(self) -> _Members:
        return self

    def __next__(self) -> tuple[str, int]:
        at = _skip_space(self._text, self.end)
        if self._text[at] in "{,":
            at = _skip_space(self._text, at + 1)
        if self._text[at] == "}":
            self.end = at + 1
            raise StopIteration
        self.key_at = at
        key, at = read_string(self._text, at)
        colon = _skip_space(self._text, at)
        return key, _skip_space(self._text, colon + 1)


def locate(text: str, path: Path) -> int:
    """The place of a field in a JSON text, or of the closest part of the way to it that exists."""
    at = place = _skip_space(text, 0)
    for part in path:
        if text[at] == "{":
            members = _Members(text, at)
            for key, start in members:
                if key == str(part):
                    place, at = members.key_at, start
                    break
                members.end = end_of_value(text, start)
        elif text[at] == "[" and isinstance(part, int):
            found = _locate_item(text, at, part)
            place = at = at if found is None else found
    return place


def _locate_item(text: str, at: int, index: int) -> int | None:
    at = _skip_space(text, at + 1)
    while text[at] != "]":
        if index == 0:
            return at
        index -= 1
        at = _skip_space(text, end_of_value(text, at))
        if text[at] == ",":
            at = _skip_space(text, at + 1)
    return None
