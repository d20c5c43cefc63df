"""The parser's stack: brackets that are open, and in each the operators that wait for their right side."""

from __future__ import annotations

from typing import Final

from dray.cel.ast import Call, Expr
from dray.cel.lexer import END

CLOSERS: Final = {"text": END, "(": ")", "call": ")", "index": "]", "[": "]", "{": "}", "message": "}"}
"""Kinds of frames and the tokens that close them. `(`, `[` and `{` are brackets that start an operand."""


class Pending:
    """An operator whose right side isn't complete: all that is left of it, and how deep that is."""

    __slots__ = ("function", "height", "ids", "precedence", "terms")

    def __init__(self, precedence: int, function: str, node_id: int, left: Expr, height: int) -> None:
        self.precedence = precedence
        self.function = function
        self.ids = [node_id]
        self.terms = [left]
        self.height = height

    def balanced(self, low: int, high: int) -> Expr:
        """A chain of `&&` or `||` as a balanced tree, split where cel-go splits it."""
        middle = (low + high + 1) // 2
        left = self.terms[middle] if middle == low else self.balanced(low, middle - 1)
        right = self.terms[middle + 1] if middle == high else self.balanced(middle + 1, high)
        return Call(self.ids[middle], self.function, (left, right))


class Frame:
    """An open bracket (or the whole text) and the expressions read inside it so far."""

    __slots__ = (
        "calcs",
        "closer",
        "depth",
        "entry_ids",
        "function",
        "height",
        "items",
        "kind",
        "names",
        "node_id",
        "optional",
        "pending",
        "position",
        "prefix",
        "relations",
        "start_depth",
        "target",
    )

    def __init__(self, kind: str, depth: int, relations: int, calcs: int) -> None:
        self.kind = kind
        self.closer = CLOSERS[kind]
        # How deep the grammar rules of cel-go are nested for an expression in here.
        self.start_depth = self.depth = depth
        self.relations = relations
        self.calcs = calcs
        self.pending: list[Pending] = []
        self.prefix: tuple[str, int] | None = None
        # What the bracket becomes when it closes.
        self.node_id = 0
        self.position = 0
        self.target: Expr | None = None
        self.function = ""
        self.items: list[Expr] = []
        self.names: list[str] = []
        self.entry_ids: list[int] = []
        self.optional: set[int] = set()
        self.height = 0
