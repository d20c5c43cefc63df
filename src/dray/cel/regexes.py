"""Regular expressions with the syntax and meaning of Go's RE2. Matching takes linear time, and memory is bounded."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

import re2

MAX_MEMORY: Final = 1 << 20
"""Per expression. Go would take larger ones; an expression of 10 KiB could hold hundreds of them."""

MAX_DEPTH: Final = 1000
_PART: Final = re.compile(
    r"""\\Q.*?(?:\\E|$)            # quoted text
    | \\(?P<escape>.)             # an escaped character
    | \[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]   # a class of characters
    | \(\?P?<(?P<name>\w+)>      # a group with a name
    | [()]                       # any other group
    """,
    re.DOTALL | re.VERBOSE | re.ASCII,
)


class InvalidRegex(ValueError):
    """The text is no RE2 expression."""


class Regex:
    """A compiled expression; offsets stay hidden, texts go in and out."""

    __slots__ = ("_compiled",)

    def __init__(self, pattern: str) -> None:
        options = re2.Options()
        options.max_mem = MAX_MEMORY
        options.log_errors = False
        options.never_capture = True  # only whole matches are of interest
        _refuse_what_go_refuses(pattern)
        try:
            self._compiled: Any = re2.compile(pattern, options)
        except re2.error as error:
            # The reason comes as bytes.
            reason = error.args[0] if error.args else ""
            text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
            raise InvalidRegex(f"error parsing regexp: {text}") from error

    def is_in(self, text: str) -> bool:
        """Whether it matches somewhere in the text."""
        return self._compiled.search(text.encode()) is not None

    def find(self, text: str) -> str:
        """The first match; empty if there is none."""
        match = self._compiled.search(text.encode())
        return "" if match is None else match.group().decode()

    def find_all(self, text: str, limit: int = -1) -> list[str]:
        """All matches, at most `limit` unless that is negative. An empty match right after another one is left out."""
        data = text.encode()
        found: list[str] = []
        position, previous_end = 0, -1
        while position <= len(data) and (limit < 0 or len(found) < limit):
            match = self._compiled.search(data, position)
            if match is None:
                break
            start, end = match.span()
            if end != position or start != previous_end:
                found.append(data[start:end].decode())
            position = end if end != position else position + _width(data, position)
            previous_end = end
        return found


def _refuse_what_go_refuses(pattern: str) -> None:
    """The library takes what Go doesn't: `\\C` for any byte, a group name that is used twice, and deep nesting."""
    names: set[str] = set()
    depth = 0
    for part in _PART.finditer(pattern):
        depth += (part[0][0] == "(") - (part[0] == ")")
        if depth > MAX_DEPTH:
            raise InvalidRegex("error parsing regexp: expression nests too deeply")
        if part["escape"] == "C":
            raise InvalidRegex("error parsing regexp: invalid escape sequence: `\\C`")
        if (name := part["name"]) is not None:
            if name in names:
                raise InvalidRegex(f"error parsing regexp: duplicate capture group name: `{name}`")
            names.add(name)


def _width(data: bytes, position: int) -> int:
    """Bytes of the character at `position`; 1 at the end."""
    end = position + 1
    while end < len(data) and data[end] & 0xC0 == 0x80:
        end += 1
    return end - position


@lru_cache(maxsize=128)
def compile_regex(pattern: str) -> Regex:
    """Raises InvalidRegex."""
    return Regex(pattern)
