"""Text to tokens. One regular expression finds them; what a literal means is decided in `literals`."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from dray.cel.errors import CompileError

_ESCAPE = r"""\\(?:[abfnrtv"'\\?`]|[0-3][0-7]{2}|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"""
_STRING = "|".join(
    (
        rf'"""[^"\\]*(?:(?:{_ESCAPE}|"(?!""))[^"\\]*)*"""',
        rf"'''[^'\\]*(?:(?:{_ESCAPE}|'(?!''))[^'\\]*)*'''",
        rf'"[^"\\\n\r]*(?:{_ESCAPE}[^"\\\n\r]*)*"',
        rf"'[^'\\\n\r]*(?:{_ESCAPE}[^'\\\n\r]*)*'",
        r'[rR]"""[^"]*(?:"(?!"")[^"]*)*"""',
        r"[rR]'''[^']*(?:'(?!'')[^']*)*'''",
        r'[rR]"[^"\n\r]*"',
        r"[rR]'[^'\n\r]*'",
    )
)
_EXPONENT = r"[eE][+-]?[0-9]+"
_TOKEN: Final = re.compile(
    "|".join(
        (
            r"(?P<skip>[ \t\r\n\f]+|//[^\n]*)",
            rf"(?P<string>{_STRING})",
            rf"(?P<bytes>[bB](?:{_STRING}))",
            r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)",
            rf"(?P<double>[0-9]+\.[0-9]+(?:{_EXPONENT})?|[0-9]+{_EXPONENT}|\.[0-9]+(?:{_EXPONENT})?)",
            r"(?P<uint>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])",
            r"(?P<int>0x[0-9a-fA-F]+|[0-9]+)",
            r"(?P<operator>==|!=|<=|>=|&&|\|\||[-<>\[\](){}.,!?:+*/%])",
            r"(?P<quoted>`[A-Za-z0-9_./ -]+`)",
        )
    )
)
_KEYWORDS: Final = frozenset(("in", "true", "false", "null"))
_SURROGATE: Final = re.compile("[\ud800-\udfff]")

END: Final = "end of expression"
"""Kind of the token after the last one."""


class Tokens(NamedTuple):
    """Parallel lists, one entry per token. The kind of an operator or keyword is its text."""

    kinds: list[str]
    texts: list[str]
    positions: list[int]


def tokenize(text: str) -> Tokens:
    if not text.isascii() and (surrogate := _SURROGATE.search(text)):
        raise CompileError("invalid unicode code point", text=text, position=surrogate.start())
    kinds: list[str] = []
    texts: list[str] = []
    positions: list[int] = []
    position = 0
    length = len(text)
    match = _TOKEN.match
    while position < length:
        found = match(text, position)
        if found is None:
            raise CompileError(_explain(text, position), text=text, position=position)
        kind = found.lastgroup
        assert kind is not None
        if kind != "skip":
            token = found[0]
            if kind == "operator" or token in _KEYWORDS:
                kind = token
            kinds.append(kind)
            texts.append(token)
            positions.append(position)
        position = found.end()
    kinds.append(END)
    texts.append("")
    positions.append(length)
    return Tokens(kinds, texts, positions)


def _explain(text: str, position: int) -> str:
    character = text[position]
    match character:
        case '"' | "'":
            return "this string doesn't end, or holds an escape sequence that doesn't exist"
        case "`":
            return "a quoted field name is letters, digits and any of `_.-/ ` between backticks"
        case "&" | "|" | "=":
            return f"unexpected character {character!r}; did you mean '{character * 2}'?"
        case _:
            return f"unexpected character {character!r}"
