"""What the literals of an expression stand for: escapes in strings and bytes, numbers and their ranges."""

from __future__ import annotations

import math
import re
from typing import Final

from dray.cel.ast import LiteralValue, Uint

_INT_MIN: Final = -(2**63)
_INT_MAX: Final = 2**63 - 1
_UINT_MAX: Final = 2**64 - 1

_SIMPLE_ESCAPES: Final = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "`": "`",
    "?": "?",
}
_ESCAPE: Final = re.compile(r"\\(?:[xX](..)|u(.{4})|U(.{8})|([0-3]..)|(.))", re.DOTALL)


class InvalidLiteral(ValueError):
    """The token looks like a literal, but no value is behind it."""


def literal_value(kind: str, text: str, *, negative: bool) -> LiteralValue:
    """The value of a literal token. `negative` is for numbers whose minus is a token of its own."""
    match kind:
        case "string":
            return parse_string(text)
        case "bytes":
            return parse_bytes(text)
        case "int":
            return parse_int(text, negative=negative)
        case "uint":
            return parse_uint(text)
        case _:
            return parse_double(text, negative=negative)


def parse_int(text: str, *, negative: bool) -> int:
    value = int(text[2:], 16) if text.startswith("0x") else _parse_decimal(text)
    if negative:
        value = -value
    if not _INT_MIN <= value <= _INT_MAX:
        raise InvalidLiteral("invalid int literal: out of the range of 64 bits")
    return value


def parse_uint(text: str) -> Uint:
    digits = text[:-1]
    value = int(digits[2:], 16) if digits.startswith("0x") else _parse_decimal(digits)
    if value > _UINT_MAX:
        raise InvalidLiteral("invalid uint literal: out of the range of 64 bits")
    return Uint(value)


def _parse_decimal(digits: str) -> int:
    # Python refuses to convert thousands of digits, and no such number would fit anyway.
    significant = digits.lstrip("0")
    if len(significant) > 20:
        raise InvalidLiteral("invalid number: out of the range of 64 bits")
    return int(significant or "0")


def parse_double(text: str, *, negative: bool) -> float:
    value = float(text)
    if math.isinf(value):
        raise InvalidLiteral("invalid double literal: too large")
    return -value if negative else value


def parse_string(token: str) -> str:
    raw, body = _unquote(token)
    if raw or "\\" not in body:
        return body
    return _ESCAPE.sub(_string_escape, body)


def parse_bytes(token: str) -> bytes:
    raw, body = _unquote(token[1:])
    if raw or "\\" not in body:
        return body.encode()
    pieces: list[bytes] = []
    end = 0
    for escape in _ESCAPE.finditer(body):
        pieces.append(body[end : escape.start()].encode())
        pieces.append(_byte_escape(escape))
        end = escape.end()
    pieces.append(body[end:].encode())
    return b"".join(pieces)


def _unquote(token: str) -> tuple[bool, str]:
    raw = token[0] in "rR"
    if raw:
        token = token[1:]
    if "\r" in token:
        token = token.replace("\r\n", "\n").replace("\r", "\n")
    width = 3 if len(token) >= 6 and token[:3] in ('"""', "'''") else 1
    return raw, token[width:-width]


def _string_escape(escape: re.Match[str]) -> str:
    if (simple := escape[5]) is not None:
        return _SIMPLE_ESCAPES[simple]
    hexadecimal = escape[1] or escape[2] or escape[3]
    code = int(hexadecimal, 16) if hexadecimal else int(escape[4], 8)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise InvalidLiteral("invalid unicode code point")
    return chr(code)


def _byte_escape(escape: re.Match[str]) -> bytes:
    if (simple := escape[5]) is not None:
        return _SIMPLE_ESCAPES[simple].encode()
    if escape[2] or escape[3]:
        raise InvalidLiteral("unable to unescape: \\u and \\U can't stand in bytes")
    return bytes((int(escape[1], 16) if escape[1] else int(escape[4], 8),))
