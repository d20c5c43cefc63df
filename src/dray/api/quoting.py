"""Quoted text as Kubernetes writes it in messages."""

from __future__ import annotations

import json
from typing import Final

_ESCAPES: Final = {
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
    '"': r"\"",
    "\\": r"\\",
}


_JSON_ESCAPES: Final = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})


def quote(text: str) -> str:
    """The text in double quotes, as Go's %q: what doesn't print is escaped."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(map(_escape, text)) + '"'


def _escape(character: str) -> str:
    if (known := _ESCAPES.get(character)) is not None:
        return known
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def quote_json(text: str) -> str:
    """The text as a JSON string the way Go writes it, safe to be put into HTML."""
    return json.dumps(text, ensure_ascii=False).translate(_JSON_ESCAPES)
