"""Functions on regular expressions: `matches`, `find`, `findAll`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dray.cel.errors import EvaluationError
from dray.cel.regexes import InvalidRegex, Regex, compile_regex
from dray.cel.values import Value


def _compile(pattern: str) -> Regex:
    try:
        return compile_regex(pattern)
    except InvalidRegex as error:
        raise EvaluationError(str(error)) from None


def matches(text: str, pattern: str) -> bool:
    return _compile(pattern).is_in(text)


def find(text: str, pattern: str) -> str:
    return _compile(pattern).find(text)


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    return _compile(pattern).find_all(text, limit)


OVERLOADS: Final[dict[str, Callable[..., Value]]] = {
    "matches": matches,
    "matches_string": matches,
    "string_find_string": find,
    "string_find_all_string": find_all,
    "string_find_all_string_int": find_all,
}
