"""A tree written as text again, for people: macros as they were called, brackets only where they are needed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from dray.cel.ast import (
    Call,
    Comprehension,
    Expr,
    Ident,
    ListExpr,
    Literal,
    LiteralValue,
    MacroCall,
    MapExpr,
    Select,
    StructExpr,
    Uint,
)
from dray.cel.numbers import format_double

_BINARY: Final = {
    "_||_": ("||", 1),
    "_&&_": ("&&", 2),
    "_<_": ("<", 3),
    "_<=_": ("<=", 3),
    "_>_": (">", 3),
    "_>=_": (">=", 3),
    "_==_": ("==", 3),
    "_!=_": ("!=", 3),
    "@in": ("in", 3),
    "_+_": ("+", 4),
    "_-_": ("-", 4),
    "_*_": ("*", 5),
    "_/_": ("/", 5),
    "_%_": ("%", 5),
}
_UNARY: Final = {"!_": "!", "-_": "-"}
_TERNARY_LEVEL, _UNARY_LEVEL, _MEMBER_LEVEL = 0, 6, 7
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def unparse(node: Expr, macro_calls: Mapping[int, MacroCall]) -> str:
    """The text of an expression. It means the same, but need not be what was written."""
    return _Unparser(macro_calls).write(node, _TERNARY_LEVEL)


class _Unparser:
    def __init__(self, macro_calls: Mapping[int, MacroCall]) -> None:
        self._macro_calls = macro_calls

    def write(self, node: Expr, level: int) -> str:
        """The text, in brackets if its operator binds less than `level`."""
        macro = self._macro_calls.get(node.id)
        if macro is not None:
            return self._call(macro.function, macro.target, macro.args)
        match node:
            case Literal(_, value):
                text = write_literal(value)
                return f"({text})" if level >= _MEMBER_LEVEL and text.startswith("-") else text
            case Ident(_, name):
                return name
            case Select(_, operand, field, test_only):
                name = field if _NAME.fullmatch(field) else f"`{field}`"
                text = f"{self.write(operand, _MEMBER_LEVEL)}.{name}"
                return f"has({text})" if test_only else text
            case Call(_, function, args, target):
                return self._operator(function, args, level) or self._call(function, target, args)
            case ListExpr(_, elements, optional):
                items = [f"{'?' if index in optional else ''}{self._argument(e)}" for index, e in enumerate(elements)]
                return f"[{', '.join(items)}]"
            case MapExpr(_, entries):
                pairs = [
                    f"{'?' if entry.optional else ''}{self._argument(entry.key)}: {self._argument(entry.value)}"
                    for entry in entries
                ]
                return f"{{{', '.join(pairs)}}}"
            case StructExpr(_, type_name, fields):
                pairs = [f"{'?' if f.optional else ''}{f.field}: {self._argument(f.value)}" for f in fields]
                return f"{type_name}{{{', '.join(pairs)}}}"
            case Comprehension():
                return f"{self.write(node.iter_range, _MEMBER_LEVEL)}.fold(...)"

    def _argument(self, node: Expr) -> str:
        return self.write(node, _TERNARY_LEVEL)

    def _call(self, function: str, target: Expr | None, args: tuple[Expr, ...]) -> str:
        listed = ", ".join(map(self._argument, args))
        return (
            f"{function}({listed})" if target is None else f"{self.write(target, _MEMBER_LEVEL)}.{function}({listed})"
        )

    def _operator(self, function: str, args: tuple[Expr, ...], level: int) -> str | None:
        match function, args:
            case "_?_:_", (condition, then, otherwise):
                text = f"{self.write(condition, 1)} ? {self.write(then, 1)} : {self.write(otherwise, 0)}"
                return f"({text})" if level > _TERNARY_LEVEL else text
            case "_[_]", (target, index):
                return f"{self.write(target, _MEMBER_LEVEL)}[{self._argument(index)}]"
            case "_[?_]", (target, index):
                return f"{self.write(target, _MEMBER_LEVEL)}[?{self._argument(index)}]"
            case "_?._", (target, Literal(_, str(field))):
                return f"{self.write(target, _MEMBER_LEVEL)}.?{field}"
        if function in _UNARY and len(args) == 1:
            text = f"{_UNARY[function]}{self.write(args[0], _UNARY_LEVEL)}"
            return f"({text})" if level > _UNARY_LEVEL else text
        if function in _BINARY and len(args) == 2:
            symbol, own = _BINARY[function]
            # Logic is associative, and its chains are balanced; the others group to the left.
            right = own if function in ("_&&_", "_||_") else own + 1
            text = f"{self.write(args[0], own)} {symbol} {self.write(args[1], right)}"
            return f"({text})" if level > own else text
        return None


def write_literal(value: LiteralValue) -> str:
    """A constant as CEL writes it."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case Uint():
            return f"{int(value)}u"
        case float():
            text = format_double(value)
            return text if not text.lstrip("-").isdigit() else f"{text}.0"
        case str():
            return f'"{value.translate(_ESCAPES)}"'
        case bytes():
            return "b" + write_literal("".join(chr(b) if 0x20 <= b < 0x7F else f"\\x{b:02x}" for b in value)).replace(
                "\\\\x", "\\x"
            )
        case _:
            return str(value)
