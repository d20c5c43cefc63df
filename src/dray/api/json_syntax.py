"""Whether a text is JSON, where its values end, and what is wrong with it in Go's words."""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final, Never

from dray.api.quoting import quote

_SPACE: Final = " \t\n\r"
_NUMBER: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"?', re.DOTALL)
_LARGE: Final = re.compile(r"[0-9]{300}|[0-9][eE][+]?[0-9]{3}")
"""Something that could be a number larger than any float."""
_SEPARATORS: Final = str.maketrans("[]{}:,", "      ")
_LITERALS: Final = ("true", "false", "null")


class JsonSyntaxError(ValueError):
    """The reason as Go words it, and its place; `line` and `column` count from 1."""

    def __init__(self, reason: str, line: int = 1, column: int = 1) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line
        self.column = column


def _refuse_constant(name: str) -> Never:
    context = "in numeric literal" if name.startswith("-") else "looking for beginning of value"
    raise JsonSyntaxError(f"invalid character {_show(name.lstrip('-')[0])} {context}")


_SCANNER: Final = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=_refuse_constant)


def check_syntax(text: str) -> None:
    """Raise JsonSyntaxError unless `text` is one JSON value."""
    try:
        _SCANNER.decode(text)
    except json.JSONDecodeError as error:
        raise JsonSyntaxError(_explain(text, error), error.lineno, error.colno) from None
    except RecursionError:
        raise JsonSyntaxError("exceeded max depth") from None


def end_of_value(text: str, at: int) -> int:
    """Where the JSON value that begins at `at` ends. Raises ValueError or RecursionError if it isn't JSON."""
    if (number := _NUMBER.match(text, at)) is not None:
        return number.end()
    return _SCANNER.raw_decode(text, at)[1]


def read_string(text: str, at: int) -> tuple[str, int]:
    """The string that begins at `at`, and where it ends."""
    value, end = _SCANNER.raw_decode(text, at)
    return _mend(value), end


def read_value(text: str) -> Any:
    """The JSON value that `text` is. Raises JsonSyntaxError for a number that no 64 bits can hold."""
    try:
        return _READER.decode(_ESCAPED_SURROGATES.sub(_mend_escapes, text) if "\\u" in text else text)
    except _OutOfRange as error:
        at = text.find(error.number)
        line = text.count("\n", 0, at) + 1
        shown = error.number if len(error.number) <= 24 else f"{error.number[:20]}…"
        raise JsonSyntaxError(f"the number {shown} is out of range", line, at - text.rfind("\n", 0, at)) from None


def find_number_out_of_range(text: str) -> str | None:
    """The first number of a JSON text that is larger than any float."""
    if _LARGE.search(text) is None:
        return None
    return next(
        (number for number in _STRING.sub("", text).translate(_SEPARATORS).split() if _is_out_of_range(number)), None
    )


def _is_out_of_range(number: str) -> bool:
    return number[-1].isdigit() and not math.isfinite(float(number))


class _OutOfRange(ValueError):
    def __init__(self, number: str) -> None:
        super().__init__(number)
        self.number = number


def _read_number(text: str) -> int | float:
    """Whole numbers stay exact as far as a float reaches, which is further than Go."""
    if not math.isfinite(value := float(text)):
        raise _OutOfRange(text)
    return int(text) if text.lstrip("-").isdigit() else value


_READER: Final = json.JSONDecoder(parse_float=_read_number, parse_int=_read_number)
_ESCAPED_SURROGATES: Final = re.compile(r"((?:\\u[dD][89a-fA-F][0-9a-fA-F]{2})+)|\\.", re.DOTALL)


def _mend_escapes(escape: re.Match[str]) -> str:
    if escape[1] is None:
        return escape[0]
    return _mend("".join(chr(int(code, 16)) for code in escape[1].split("\\u")[1:]))


def _mend(text: str) -> str:
    """Half of a surrogate pair can be escaped in JSON but isn't text; Go reads it as U+FFFD."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _show(character: str) -> str:
    """As Go shows a character that doesn't belong there."""
    if character in ("'", '"'):
        return "'\\''" if character == "'" else "'\"'"
    return f"'{quote(character)[1:-1]}'"


_CONTEXTS: Final = {
    "Extra data": "after top-level value",
    "Expecting property name": "looking for beginning of object key string",
    "Illegal trailing comma before end of object": "looking for beginning of object key string",
    "Expecting ':' delimiter": "after object key",
    "Invalid control character": "in string literal",
    "Invalid \\escape": "in string escape code",
    "Invalid \\uXXXX escape": "in \\u hexadecimal character escape",
}
"""What Go says of the place, by how Python's message begins."""


def _explain(text: str, error: json.JSONDecodeError) -> str:
    at = error.pos
    if "trailing comma" in error.msg or text[at : at + 1] == "\\":
        at += 1  # the comma, in Python 3.13 and later, or the backslash is fine; what follows isn't
    if not error.msg.startswith("Invalid"):
        at = _skip_space(text, at)
    if error.msg.startswith("Unterminated") or at >= len(text):
        return "unexpected end of JSON input"
    if error.msg.startswith("Expecting value"):
        for literal in _LITERALS:
            if text[at] == literal[0]:
                return _explain_literal(text, at, literal)
    return f"invalid character {_show(text[at])} {_context(text, error.msg, at)}"


def _context(text: str, message: str, at: int) -> str:
    if message.startswith("Expecting ',' delimiter"):
        return "after array element" if _is_in_array(text, at) else "after object key:value pair"
    return next(
        (said for begin, said in _CONTEXTS.items() if message.startswith(begin)), "looking for beginning of value"
    )


def _explain_literal(text: str, at: int, literal: str) -> str:
    for offset, wanted in enumerate(literal):
        if at + offset >= len(text):
            break
        if text[at + offset] != wanted:
            return f"invalid character {_show(text[at + offset])} in literal {literal} (expecting {_show(wanted)})"
    return "unexpected end of JSON input"


def _is_in_array(text: str, end: int) -> bool:
    """Whether the innermost bracket that is open at `end` is a square one."""
    depth: list[str] = []
    at = 0
    while at < end:
        if text[at] == '"' and (string := _STRING.match(text, at)) is not None:
            at = string.end()
            continue
        if text[at] in "[{":
            depth.append(text[at])
        elif text[at] in "]}" and depth:
            depth.pop()
        at += 1
    return bool(depth) and depth[-1] == "["


def _skip_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at
