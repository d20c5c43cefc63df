"""Functions on strings: the standard ones and the strings extension, version 2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

from dray.cel.errors import EvaluationError
from dray.cel.meter import Meter
from dray.cel.string_format import format_string
from dray.cel.values import Value, no_such_overload

_WHITE_SPACE: Final = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a" + (
    "\u2028\u2029\u202f\u205f\u3000"
)
_ASCII_UPPER: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_TO_LOWER: Final = str.maketrans(_ASCII_UPPER, _ASCII_UPPER.lower())
_TO_UPPER: Final = str.maketrans(_ASCII_UPPER.lower(), _ASCII_UPPER)
_QUOTED: Final = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
)


def char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


def index_of(text: str, part: str, offset: int = 0) -> int:
    if not part:
        return offset
    if offset < 0:
        raise _out_of_range(offset)
    return text.find(part, offset)


def last_index_of(text: str, part: str) -> int:
    if not part:
        return len(text)
    return text.rfind(part)


def last_index_of_offset(text: str, part: str, offset: int) -> int:
    if not part:
        return offset
    if offset < 0:
        raise _out_of_range(offset)
    if offset >= len(text):
        return -1
    return text.rfind(part, 0, offset + len(part))


def substring(text: str, start: int) -> str:
    if not 0 <= start <= len(text):
        raise _out_of_range(start)
    return text[start:]


def substring_range(text: str, start: int, end: int) -> str:
    if start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, end):
        if not 0 <= index <= len(text):
            raise _out_of_range(index)
    return text[start:end]


def _out_of_range(index: int) -> EvaluationError:
    return EvaluationError(f"index out of range: {index}")


def lower_ascii(text: str) -> str:
    return text.translate(_TO_LOWER)


def upper_ascii(text: str) -> str:
    return text.translate(_TO_UPPER)


def trim(text: str) -> str:
    return text.strip(_WHITE_SPACE)


def quote(text: str) -> str:
    return f'"{text.translate(_QUOTED)}"'


def split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if separator:
        return text.split(separator, limit - 1) if limit > 0 else text.split(separator)
    if 0 < limit < len(text):
        return [*text[: limit - 1], text[limit - 1 :]]
    return list(text)


def replace(meter: Meter, text: str, old: str, new: str, limit: int = -1) -> str:
    count = text.count(old)
    if limit >= 0:
        count = min(count, limit)
    # The price is by the length of the text alone, so the result is counted before it is made.
    meter.spend_text(len(text) + count * max(0, len(new) - len(old)))
    return text.replace(old, new, count)


def join(meter: Meter, parts: list[Value], separator: str = "") -> str:
    for part in parts:
        if type(part) is not str:
            raise no_such_overload("join", parts)
        meter.spend_text(len(part) + len(separator))
    meter.spend(len(parts))
    return separator.join(cast("list[str]", parts))


def contains(text: str, part: str) -> bool:
    return part in text


def starts_with(text: str, part: str) -> bool:
    return text.startswith(part)


def ends_with(text: str, part: str) -> bool:
    return text.endswith(part)


OVERLOADS: Final[dict[str, Callable[..., Value]]] = {
    "contains_string": contains,
    "starts_with_string": starts_with,
    "ends_with_string": ends_with,
    "string_char_at_int": char_at,
    "string_index_of_string": index_of,
    "string_index_of_string_int": index_of,
    "string_last_index_of_string": last_index_of,
    "string_last_index_of_string_int": last_index_of_offset,
    "string_lower_ascii": lower_ascii,
    "string_upper_ascii": upper_ascii,
    "string_substring_int": substring,
    "string_substring_int_int": substring_range,
    "string_trim": trim,
    "string_split_string": split,
    "string_split_string_int": split,
    "strings_quote": quote,
}
METERED: Final[dict[str, Callable[..., Value]]] = {
    "string_replace_string_string": replace,
    "string_replace_string_string_int": replace,
    "list_join": join,
    "list_join_string": join,
    "string_format": format_string,
}
