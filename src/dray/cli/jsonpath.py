"""JSONPath templates as `kubectl -o jsonpath=` takes them.

Text outside braces is printed as it is. Within: paths (`.items[*].metadata.name`, `['a.b']`, `[0]`, `[1:3]`, `..name`,
`[?(@.type=="Ready")]`), quoted text, and `range ... end`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple


class BadTemplate(ValueError):
    """The template can't be read; the text shows where."""


class _Field(NamedTuple):
    name: str


class _Everything(NamedTuple):
    pass


class _Descend(NamedTuple):
    pass


class _Slice(NamedTuple):
    start: int | None
    end: int | None
    step: int | None
    single: bool


class _Filter(NamedTuple):
    left: _Operand
    operator: str
    right: _Operand | None


class _Operand(NamedTuple):
    """A path from the item (or the root), or a literal."""

    path: tuple[_Step, ...] | None
    literal: Any = None
    from_root: bool = False


_Step = _Field | _Everything | _Descend | _Slice | _Filter


class _Text(NamedTuple):
    text: str


class _Path(NamedTuple):
    steps: tuple[_Step, ...]
    from_root: bool


class _Range(NamedTuple):
    over: _Path
    body: tuple[_Node, ...]


_Node = _Text | _Path | _Range

_NAME: Final = re.compile(r"(?:\\.|[A-Za-z0-9_\-/])+")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r"}
_OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": lambda left, right: bool(left == right),
    "!=": lambda left, right: bool(left != right),
    "<=": lambda left, right: bool(left <= right),
    ">=": lambda left, right: bool(left >= right),
    "<": lambda left, right: bool(left < right),
    ">": lambda left, right: bool(left > right),
}


class Template:
    """A compiled template. Raises BadTemplate."""

    def __init__(self, text: str) -> None:
        # As kubectl does, a bare path may come without braces.
        self._nodes = _Parser(text if "{" in text else f"{{{text}}}").parse()

    def render(self, obj: Any) -> str:
        return "".join(_render(self._nodes, obj, obj))


def _render(nodes: tuple[_Node, ...], current: Any, root: Any) -> Iterator[str]:
    for node in nodes:
        match node:
            case _Text(text):
                yield text
            case _Path():
                yield " ".join(_show(value) for value in _find(node, current, root))
            case _Range(over, body):
                for value in _find(over, current, root):
                    yield from _render(body, value, root)


def _show(value: Any) -> str:
    match value:
        case str():
            return value
        case None:
            return ""
        case _:
            return json.dumps(value, separators=(",", ":"))


def _find(path: _Path, current: Any, root: Any) -> list[Any]:
    return _walk([root if path.from_root else current], path.steps, root)


def _walk(values: list[Any], steps: tuple[_Step, ...], root: Any) -> list[Any]:
    for step in steps:
        values = [found for value in values for found in _step(value, step, root)]
    return values


def _step(value: Any, step: _Step, root: Any) -> Iterator[Any]:
    match step:
        case _Field(name):
            if isinstance(value, dict) and name in value:
                yield value[name]
        case _Everything():
            if isinstance(value, dict | list):
                yield from value.values() if isinstance(value, dict) else value
        case _Descend():
            yield value
            if isinstance(value, dict | list):
                for inner in value.values() if isinstance(value, dict) else value:
                    yield from _step(inner, step, root)
        case _Slice(start, end, skip, single):
            if isinstance(value, list):
                if not single:
                    yield from value[start:end:skip]
                elif start is not None and -len(value) <= start < len(value):
                    yield value[start]
        case _Filter():
            if isinstance(value, list):
                yield from (item for item in value if _passes(step, item, root))


def _passes(test: _Filter, item: Any, root: Any) -> bool:
    left = _values(test.left, item, root)
    if test.right is None:
        return bool(left)
    right = _values(test.right, item, root)
    if len(left) != 1 or len(right) != 1:
        return False
    try:
        return _OPERATORS[test.operator](left[0], right[0])
    except TypeError:  # values that have no order
        return False


def _values(operand: _Operand, item: Any, root: Any) -> list[Any]:
    if operand.path is None:
        return [operand.literal]
    return _walk([root if operand.from_root else item], operand.path, root)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def parse(self) -> tuple[_Node, ...]:
        nodes, ended = self._nodes()
        if ended:
            raise self._error("not in range, nothing to end")
        return nodes

    def _error(self, problem: str) -> BadTemplate:
        return BadTemplate(f"{problem}\n  {self._text}\n  {' ' * self._at}^")

    def _nodes(self) -> tuple[tuple[_Node, ...], bool]:
        """Up to the end of the text, or of the range; the flag says which."""
        nodes: list[_Node] = []
        while self._at < len(self._text):
            start = self._text.find("{", self._at)
            if start < 0:
                start = len(self._text)
            if start > self._at:
                nodes.append(_Text(self._text[self._at : start]))
            self._at = start + 1
            if start >= len(self._text):
                break
            self._skip_space()
            if self._take("end"):
                self._close()
                return tuple(nodes), True
            if self._take("range "):
                over = self._path()
                self._close()
                body, ended = self._nodes()
                if not ended:
                    raise self._error("unterminated range")
                nodes.append(_Range(over, body))
                continue
            nodes.extend(self._action())
        return tuple(nodes), False

    def _action(self) -> Iterator[_Node]:
        """What braces hold: text in quotes and paths, in any number."""
        while True:
            self._skip_space()
            if self._take("}"):
                return
            if self._is_quote():
                yield _Text(self._quoted())
            else:
                yield self._path()

    def _path(self) -> _Path:
        self._skip_space()
        from_root = self._take("$")
        if not from_root:
            self._take("@")
        before = self._at
        steps = self._steps()
        if self._at == before and not from_root and self._text[before - 1] != "@":
            raise self._error("a path is expected here")
        return _Path(steps, from_root)

    def _steps(self) -> tuple[_Step, ...]:
        steps: list[_Step] = []
        while True:
            if self._take(".."):
                steps.append(_Descend())
                if self._peek() not in ".[}":
                    steps.append(self._name())
            elif self._take("."):
                if self._peek() in "[ })" or not self._peek():
                    continue
                steps.append(self._name())
            elif self._take("["):
                steps.extend(self._brackets())
            elif not steps and (self._peek().isalpha() or self._peek() == "_"):
                steps.append(self._name())
            else:
                return tuple(steps)

    def _name(self) -> _Step:
        if self._take("*"):
            return _Everything()
        found = _NAME.match(self._text, self._at)
        if found is None:
            raise self._error("a field name is expected here")
        self._at = found.end()
        return _Field(found[0].replace("\\", ""))

    def _brackets(self) -> Iterator[_Step]:
        if self._take("?("):
            yield self._filter()
            self._expect("]")
        elif self._take("*"):
            self._expect("]")
            yield _Everything()
        elif self._is_quote():
            name = self._quoted()
            self._expect("]")
            yield _Field(name)
        else:
            yield self._slice()

    def _slice(self) -> _Slice:
        end = self._text.find("]", self._at)
        inner = self._text[self._at : end] if end >= 0 else ""
        parts = inner.split(":")
        try:
            numbers = [int(part) if part.strip() else None for part in parts]
        except ValueError:
            numbers = []
        if not inner or not numbers or len(numbers) > 3:
            raise self._error("an index is expected here")
        self._at = end + 1
        start, stop, step = [*numbers, None, None][:3]
        return _Slice(start, stop, step, single=len(parts) == 1)

    def _filter(self) -> _Filter:
        left = self._operand()
        self._skip_space()
        operator = next((sign for sign in _OPERATORS if self._take(sign)), "")
        right = self._operand() if operator else None
        self._skip_space()
        self._expect(")")
        return _Filter(left, operator, right)

    def _operand(self) -> _Operand:
        self._skip_space()
        if self._is_quote():
            return _Operand(None, self._quoted())
        if self._peek() in ("@", "$", "."):
            path = self._path()
            return _Operand(path.steps, from_root=path.from_root)
        found = re.compile(r"[^\s)=!<>]+").match(self._text, self._at)
        if found is None:
            raise self._error("a value is expected here")
        self._at = found.end()
        try:
            return _Operand(None, json.loads(found[0]))
        except ValueError:
            raise self._error(f"{found[0]!r} is no value; put text in quotes") from None

    def _quoted(self) -> str:
        quote = self._text[self._at]
        self._at += 1
        out: list[str] = []
        while self._at < len(self._text) and self._text[self._at] != quote:
            if self._text[self._at] == "\\" and self._at + 1 < len(self._text):
                self._at += 1
                out.append(_ESCAPES.get(self._text[self._at], self._text[self._at]))
            else:
                out.append(self._text[self._at])
            self._at += 1
        if self._at >= len(self._text):
            raise self._error("unterminated text")
        self._at += 1
        return "".join(out)

    def _is_quote(self) -> bool:
        return self._peek() in ("'", '"')

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self, text: str) -> bool:
        if self._text.startswith(text, self._at):
            self._at += len(text)
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._take(text):
            raise self._error(f"{text!r} is expected here")

    def _close(self) -> None:
        self._skip_space()
        self._expect("}")

    def _skip_space(self) -> None:
        while self._peek() == " ":
            self._at += 1
