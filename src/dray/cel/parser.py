"""Tokens to a tree, macros expanded on the way.

The parser keeps its own stack of open brackets (`Frame`) and pending operators (`Pending`) instead of recursing, so
that no input, however nested, depends on Python's recursion limit. It alternates between two questions: *what is the
next operand?* (`_operand`, then `_postfix` for `.x`, `[i]`, `.f()`) and *what follows it?* (`_operator`, or
`_deliver` to the bracket that the finished expression stands in).

Nesting limits are those of cel-go, which has two: its grammar rules may nest 250 deep (brackets; the right side of a
comparison or of arithmetic counts again), and no path through the tree may hold more than 250 operators, selections,
indexes and member calls (which is what limits `a + b + ...`). `&&` and `||` are exempt: their chains are balanced.
"""

from __future__ import annotations

from typing import Final

from dray.cel.ast import (
    Call,
    Expr,
    FieldEntry,
    Ident,
    ListExpr,
    Literal,
    MacroCall,
    MapEntry,
    MapExpr,
    Parsed,
    Select,
    StructExpr,
)
from dray.cel.brackets import Frame, Pending
from dray.cel.errors import CompileError
from dray.cel.lexer import END, tokenize
from dray.cel.literals import InvalidLiteral, literal_value
from dray.cel.macros import MacroError, NodeIds, expand

MAX_DEPTH: Final = 250

_LOGIC: Final = {"||": (1, "_||_"), "&&": (2, "_&&_")}
_RELATION: Final = 3
_OPERATORS: Final = {
    "<": (_RELATION, "_<_"),
    "<=": (_RELATION, "_<=_"),
    ">": (_RELATION, "_>_"),
    ">=": (_RELATION, "_>=_"),
    "==": (_RELATION, "_==_"),
    "!=": (_RELATION, "_!=_"),
    "in": (_RELATION, "@in"),
    "+": (4, "_+_"),
    "-": (4, "_-_"),
    "*": (5, "_*_"),
    "/": (5, "_/_"),
    "%": (5, "_%_"),
}
_QUESTION: Final = -1
_COLON: Final = 0

RESERVED: Final = frozenset(
    """
    as break const continue else false for function if import in let loop package namespace null return true var void
    while
    """.split()  # noqa: SIM905 - a list of words reads best as words
)
"""Names that can't be identifiers, though they may be fields."""


def parse(text: str) -> Parsed:
    """Parse an expression. Raises `CompileError` at the first place that isn't CEL."""
    return _Parser(text).parse()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._kinds, self._texts, self._positions = tokenize(text)
        self._next = 0
        self._ids = NodeIds()
        self._macro_calls: dict[int, MacroCall] = {}
        self._frames: list[Frame] = []
        self._frame = Frame("text", 1, 1, 1)
        self._height = 0
        """Of the expression read last: the most nodes that count on one path through it."""

    def parse(self) -> Parsed:
        try:
            expr = self._run()
        except MacroError as error:
            raise self._error(str(error), error.position) from None
        return Parsed(self._text, expr, self._ids.positions, self._macro_calls)

    def _run(self) -> Expr:
        node: Expr | None = None
        while True:
            if node is None:
                node = self._operand()
            if node is not None:
                node = self._postfix(node)
            if node is None:  # a bracket was opened: what is inside comes first
                continue
            node = self._operator(self._apply_prefix(node))
            if node is None:
                continue
            if self._frame.kind == "text":
                if self._kinds[self._next] != END:
                    raise self._unexpected("an operator or the end of the expression")
                return node
            node = self._deliver(node)

    # Operands

    def _operand(self) -> Expr | None:
        """Read an operand up to its postfixes. None if it opened a bracket."""
        kind = self._kinds[self._next]
        if kind in ("-", "!"):
            self._read_prefix(kind)
            kind = self._kinds[self._next]
        position = self._positions[self._next]
        negative = kind == "-" and self._kinds[self._next + 1] in ("int", "double")
        if negative:
            self._next += 1
            kind = self._kinds[self._next]
        index = self._next
        self._next = index + 1
        self._height = 0
        match kind:
            case "name":
                return self._name(index, "")
            case "." if self._kinds[index + 1] == "name":
                return self._name(index + 1, ".")
            case "string" | "bytes" | "int" | "uint" | "double":
                return self._literal(kind, self._texts[index], position, negative)
            case "true" | "false":
                return Literal(self._ids.at(position), kind == "true")
            case "null":
                return Literal(self._ids.at(position), None)
            case "(" | "[" | "{":
                return self._open(kind, position)
            case _:
                self._next = index
                raise self._unexpected("an expression")

    def _read_prefix(self, operator: str) -> None:
        """`!` and `-` before an operand. Pairs cancel out; a single minus before a number is part of the number."""
        first = self._next
        while self._kinds[self._next] == operator:
            self._next += 1
        count = self._next - first
        if operator == "-" and count == 1 and self._kinds[self._next] in ("int", "double"):
            self._next = first
        elif count % 2:
            self._frame.prefix = (operator, self._positions[first])

    def _apply_prefix(self, node: Expr) -> Expr:
        prefix = self._frame.prefix
        if prefix is None:
            return node
        self._frame.prefix = None
        operator, position = prefix
        return Call(self._ids.at(position), "!_" if operator == "!" else "-_", (node,))

    def _literal(self, kind: str, text: str, position: int, negative: bool) -> Expr:
        try:
            value = literal_value(kind, text, negative=negative)
        except InvalidLiteral as error:
            raise self._error(str(error), position) from None
        return Literal(self._ids.at(position), value)

    def _name(self, index: int, dot: str) -> Expr | None:
        """An identifier, a call of a function, or the type name before the braces of a message."""
        kinds = self._kinds
        end = index + 1
        while kinds[end] == "." and kinds[end + 1] == "name":
            end += 2
        if kinds[end] == "{":
            self._next = end + 1
            type_name = dot + "".join(self._texts[index:end])
            return self._open("message", self._positions[end], function=type_name)
        name = self._texts[index]
        if name in RESERVED:
            raise self._error(f"reserved identifier: {name}", self._positions[index])
        self._next = index + 1
        if kinds[index + 1] == "(":
            self._next = index + 2
            return self._open("call", self._positions[index + 1], function=dot + name)
        return Ident(self._ids.at(self._positions[index]), dot + name)

    def _postfix(self, node: Expr) -> Expr | None:
        """Selections, indexes and member calls after an operand. None if one of them opened a bracket."""
        kinds = self._kinds
        current: Expr | None = node
        while current is not None:
            position = self._positions[self._next]
            match kinds[self._next]:
                case ".":
                    current = self._select(current, position)
                case "[":
                    self._next += 1
                    optional = kinds[self._next] == "?"
                    self._next += optional
                    function = "_[?_]" if optional else "_[_]"
                    current = self._open("index", position, function=function, target=current)
                case _:
                    return current
        return None

    def _select(self, operand: Expr, position: int) -> Expr | None:
        self._next += 1
        optional = self._kinds[self._next] == "?"
        self._next += optional
        index = self._next
        kind = self._kinds[index]
        if kind not in ("name", "quoted"):
            raise self._unexpected("a field name")
        self._next = index + 1
        field = self._texts[index] if kind == "name" else self._texts[index][1:-1]
        if kind == "name" and not optional and self._kinds[index + 1] == "(":
            self._next = index + 2
            return self._open("call", self._positions[index + 1], function=field, target=operand)
        self._count(self._height)
        if optional:
            name = Literal(self._ids.at(self._positions[index]), field)
            return Call(self._ids.at(position), "_?._", (operand, name))
        return Select(self._ids.at(position), operand, field)

    # Operators

    def _operator(self, node: Expr) -> Expr | None:
        """Take in the operator after an operand. Returns the whole expression if there is none."""
        kind = self._kinds[self._next]
        frame = self._frame
        pending = frame.pending
        if kind in _OPERATORS:
            precedence, function = _OPERATORS[kind]
            node = self._reduce(node, precedence)
            pending.append(Pending(precedence, function, self._new_id(), node, self._height))
            self._check_rules(frame.depth, *self._active_rules())
        elif kind in _LOGIC:
            precedence, function = _LOGIC[kind]
            node = self._reduce(node, precedence + 1)
            if pending and pending[-1].precedence == precedence:
                self._extend(pending[-1], node)
                pending[-1].ids.append(self._new_id())
            else:
                pending.append(Pending(precedence, function, self._new_id(), node, self._height))
        elif kind == "?":
            node = self._reduce(node, 1)
            if pending and pending[-1].precedence == _QUESTION:
                raise self._unexpected("':' (a conditional in the middle of another needs parentheses)")
            pending.append(Pending(_QUESTION, "_?_:_", self._new_id(), node, self._height))
        elif kind == ":" and any(operator.precedence == _QUESTION for operator in pending):
            node = self._reduce(node, 1)
            self._extend(pending[-1], node)
            pending[-1].precedence = _COLON
            frame.depth += 1
            self._check_rules(frame.depth, 0, 0)
        else:
            if pending:
                node = self._reduce(node, _COLON)
                if pending:
                    raise self._unexpected("':' and the other branch of the conditional")
            frame.depth = frame.start_depth
            return node
        self._next += 1
        return None

    def _new_id(self) -> int:
        return self._ids.at(self._positions[self._next])

    def _extend(self, operator: Pending, term: Expr) -> None:
        operator.terms.append(term)
        operator.height = max(operator.height, self._height)

    def _reduce(self, node: Expr, precedence: int) -> Expr:
        """Complete the pending operators that bind at least as tightly as `precedence`; `node` is their right side."""
        pending = self._frame.pending
        while pending and pending[-1].precedence >= precedence:
            operator = pending.pop()
            height = max(operator.height, self._height)
            operator.terms.append(node)
            if operator.precedence in (1, 2):
                node = operator.balanced(0, len(operator.ids) - 1)
                self._height = height
            else:
                node = Call(operator.ids[0], operator.function, tuple(operator.terms))
                self._count(height)
        return node

    # Brackets

    def _open(self, kind: str, position: int, *, function: str = "", target: Expr | None = None) -> Expr | None:
        """Start a bracket. Returns what it stands for if it is empty, and so already closed."""
        relations, calcs = self._active_rules()
        frame = Frame(kind, self._frame.depth + 1, relations + 1, calcs + 1)
        frame.position = position
        frame.function = function
        frame.target = target
        frame.height = self._height if target is not None else 0
        if kind != "(":
            frame.node_id = self._ids.at(position)
        self._frames.append(self._frame)
        self._frame = frame
        if kind not in ("(", "index"):
            if kind != "call" and self._kinds[self._next] == ",":
                self._next += 1
                if self._kinds[self._next] != frame.closer:
                    raise self._unexpected(f"{frame.closer!r}")
            if self._kinds[self._next] == frame.closer:
                return self._close()
            self._start_item()
        self._check_rules(frame.depth, frame.relations, frame.calcs)
        return None

    def _start_item(self) -> None:
        """What may stand before an element: `?`, and the name of a field."""
        frame = self._frame
        if frame.kind == "call":
            return
        if self._kinds[self._next] == "?":
            frame.optional.add(len(frame.items))
            self._next += 1
        if frame.kind == "message":
            kind = self._kinds[self._next]
            if kind not in ("name", "quoted"):
                raise self._unexpected("a field name")
            text = self._texts[self._next]
            frame.names.append(text if kind == "name" else text[1:-1])
            self._next += 1
            self._read_colon()

    def _read_colon(self) -> None:
        if self._kinds[self._next] != ":":
            raise self._unexpected("':'")
        self._frame.entry_ids.append(self._new_id())
        self._next += 1

    def _deliver(self, node: Expr) -> Expr | None:
        """Hand a finished expression to its bracket. Returns what the bracket stands for if that closes it."""
        frame = self._frame
        kind = self._kinds[self._next]
        if frame.kind == "(":
            if kind != ")":
                raise self._unexpected("')'")
            self._next += 1
            self._frame = self._frames.pop()
            return node
        frame.height = max(frame.height, self._height)
        frame.items.append(node)
        if frame.kind == "{" and len(frame.items) % 2:
            self._read_colon()
            return None
        if kind == frame.closer:
            return self._close()
        if kind != "," or frame.kind == "index":
            raise self._unexpected(f"{frame.closer!r}" if frame.kind == "index" else f"',' or {frame.closer!r}")
        self._next += 1
        if frame.kind != "call" and self._kinds[self._next] == frame.closer:
            return self._close()
        self._start_item()
        return None

    def _close(self) -> Expr:
        frame = self._frame
        self._next += 1
        self._frame = self._frames.pop()
        self._height = frame.height
        items = tuple(frame.items)
        match frame.kind:
            case "call":
                if frame.target is not None:
                    self._count(frame.height)
                return self._call(frame, items)
            case "index":
                assert frame.target is not None
                self._count(frame.height)
                return Call(frame.node_id, frame.function, (frame.target, *items))
            case "[":
                return ListExpr(frame.node_id, items, frozenset(frame.optional))
            case "{":
                return MapExpr(
                    frame.node_id,
                    tuple(
                        MapEntry(entry_id, items[2 * i], items[2 * i + 1], 2 * i in frame.optional)
                        for i, entry_id in enumerate(frame.entry_ids)
                    ),
                )
            case _:
                fields = zip(frame.entry_ids, frame.names, items, strict=True)
                return StructExpr(
                    frame.node_id,
                    frame.function,
                    tuple(
                        FieldEntry(entry_id, name, value, i in frame.optional)
                        for i, (entry_id, name, value) in enumerate(fields)
                    ),
                )

    def _call(self, frame: Frame, args: tuple[Expr, ...]) -> Expr:
        expansion = expand(self._ids, frame.position, frame.function, frame.target, args)
        if expansion is None:
            return Call(frame.node_id, frame.function, args, frame.target)
        self._macro_calls[expansion.id] = MacroCall(frame.function, frame.target, args)
        return expansion

    # Limits and errors

    def _active_rules(self) -> tuple[int, int]:
        """How deep cel-go's rules `relation` and `calc` are nested at the next operand."""
        frame = self._frame
        relations, calcs = frame.relations, frame.calcs
        for operator in reversed(frame.pending):
            if operator.precedence > _RELATION:
                calcs += 1
            elif operator.precedence == _RELATION:
                relations += 1
            else:
                break
        return relations, calcs

    def _check_rules(self, depth: int, relations: int, calcs: int) -> None:
        if depth > MAX_DEPTH or relations > MAX_DEPTH or calcs > MAX_DEPTH:
            raise self._error(f"expression recursion limit exceeded: {MAX_DEPTH}", self._positions[self._next])

    def _count(self, height: int) -> None:
        self._height = height + 1
        if height >= MAX_DEPTH:
            raise self._error(f"max recursion depth exceeded: {MAX_DEPTH}", self._positions[self._next])

    def _unexpected(self, expected: str) -> CompileError:
        kind = self._kinds[self._next]
        found = END if kind == END else f"'{self._texts[self._next]}'"
        return self._error(f"Syntax error: unexpected {found}, expected {expected}", self._positions[self._next])

    def _error(self, message: str, position: int) -> CompileError:
        return CompileError(message, text=self._text, position=position)
