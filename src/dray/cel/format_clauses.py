"""`"...".format([...])` with both sides literal: are there enough arguments, and of the types that the clauses take?"""

from __future__ import annotations

from typing import Final, NoReturn

from dray.cel.ast import Call, Checked, Expr, ListExpr, Literal, MapExpr, children_of
from dray.cel.errors import CompileError
from dray.cel.types import DYN, Type
from dray.cel.unification import unwrap

_CLAUSES: Final[dict[str, tuple[frozenset[str], str]]] = {
    "d": (frozenset(("int", "uint")), "decimal clause can only be used on integers"),
    "f": (frozenset(("double", "string")), "fixed-point clause can only be used on doubles"),
    "e": (frozenset(("double", "string")), "scientific clause can only be used on doubles"),
    "b": (frozenset(("int", "uint", "bool")), "only integers and bools can be formatted as binary"),
    "x": (
        frozenset(("int", "uint", "string", "bytes")),
        "only integers, byte buffers, and strings can be formatted as hex",
    ),
    "o": (frozenset(("int", "uint")), "octal clause can only be used on integers"),
}
_PRINTABLE: Final = frozenset(("primitive", "list", "map", "type"))
"""Kinds of types that `%s` takes."""


def check_format(node: Call, checked: Checked) -> None:
    """Raise `CompileError` if a `format` call with literal format string and list can't succeed."""
    match node:
        case Call(_, _, (ListExpr(_, arguments),), Literal(_, str() as template)):
            _Check(node, arguments, checked).run(template)
        case _:
            pass


class _Check:
    def __init__(self, node: Call, arguments: tuple[Expr, ...], checked: Checked) -> None:
        self._node = node
        self._arguments = arguments
        self._checked = checked

    def run(self, template: str) -> None:
        used = 0
        position = template.find("%")
        while position >= 0:
            position += 1
            if template.startswith("%", position):
                position += 1
            else:
                position = self._clause(template, position, used)
                used += 1
            position = template.find("%", position)
        if len(self._arguments) > used:
            given = len(self._arguments)
            self._fail(self._node, f"too many arguments supplied to string.format (expected {used}, got {given})")

    def _clause(self, template: str, position: int, index: int) -> int:
        """Check one clause, from behind its percent sign. Returns where it ends."""
        if position == len(template):
            self._fail(self._node, "unexpected end of string")
        if index >= len(self._arguments):
            self._fail(self._node, f"index {index} out of range")
        if template[position] == ".":
            start = position + 1
            position = start
            while position < len(template) and template[position] in "0123456789":
                position += 1
            if position == len(template):
                self._fail_clause("error while parsing precision: could not find end of precision specifier")
            if position == start:
                self._fail_clause("error while parsing precision: there is no number after the dot")
        verb = template[position]
        argument = self._arguments[index]
        if verb == "s":
            self._require_printable(argument)
        elif verb.lower() in _CLAUSES and (verb.islower() or verb == "X"):
            allowed, rule = _CLAUSES[verb.lower()]
            type_ = self._type_of(argument)
            if type_ != DYN and not (type_.kind == "primitive" and type_.name in allowed):
                self._fail(argument, f"error during formatting: {rule}, was given {type_.name}")
        else:
            self._fail_clause(f'unrecognized formatting clause "{verb}"')
        return position + 1

    def _require_printable(self, argument: Expr) -> None:
        stack = [argument]
        while stack:
            node = stack.pop()
            type_ = self._type_of(node)
            if type_ != DYN and type_.kind not in _PRINTABLE:
                self._fail(
                    node,
                    "error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, "
                    f"maps, lists, types, durations, and timestamps, was given {type_.name}",
                )
            if isinstance(node, ListExpr | MapExpr):
                stack.extend(children_of(node))

    def _type_of(self, node: Expr) -> Type:
        return unwrap(self._checked.types[node.id])

    def _fail_clause(self, message: str) -> NoReturn:
        self._fail(self._node, f"could not parse formatting clause: {message}")

    def _fail(self, node: Expr, message: str) -> NoReturn:
        parsed = self._checked.parsed
        raise CompileError(message, text=parsed.text, position=parsed.positions[node.id])
