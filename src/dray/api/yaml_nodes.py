"""YAML text as JSON values with line numbers, resolved as the YAML library of kubectl (go-yaml v2) does.

Built from parser events rather than composed by the library, which recurses without limit in C and forgets whether a
tag was written out. An alias refers to the node of its anchor, so nothing is copied; but every node counts how many
values it stands for once written out, which is what an alias bomb multiplies.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

MAX_DEPTH: Final = 100
MAX_VALUES: Final = 1_000_000
"""How many values a document may stand for, aliases written out."""

_TAG: Final = "tag:yaml.org,2002:"
_Loader: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class InvalidYaml(ValueError):
    """`line` counts from 0 within the text."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


@dataclass(slots=True)
class Node:
    """A value and where it stands. `members` are the nodes of a mapping's or sequence's values."""

    value: Any
    line: int
    size: int = 1
    members: dict[str, Node] | list[Node] | None = None
    key_lines: dict[str, int] = field(default_factory=dict)


def read_nodes(text: str) -> Iterator[Node]:
    """The root of each document in `text`. Raises InvalidYaml."""
    try:
        events = yaml.parse(text, Loader=_Loader)
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                yield _Builder(events).build(next(events))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise InvalidYaml(error.problem or error.context or "syntax error", mark.line if mark else 0) from None
    except yaml.YAMLError as error:
        raise InvalidYaml(" ".join(str(error).split()), 0) from None


@dataclass
class _Builder:
    events: Iterator[yaml.Event]
    anchors: dict[str, Node] = field(default_factory=dict)
    depth: int = 0

    def build(self, event: yaml.Event) -> Node:
        line = _line(event)
        match event:
            case yaml.AliasEvent():
                if (target := self.anchors.get(event.anchor or "")) is None:
                    raise InvalidYaml(f"the alias *{event.anchor} has no anchor before it", line)
                return target
            case yaml.ScalarEvent():
                node = Node(_scalar(event, line), line)
            case yaml.SequenceStartEvent() if event.tag in (None, "!", f"{_TAG}seq"):
                node = self._enter(self._sequence, line)
            case yaml.MappingStartEvent() if event.tag in (None, "!", f"{_TAG}map"):
                node = self._enter(self._mapping, line)
            case yaml.SequenceStartEvent() | yaml.MappingStartEvent():
                raise InvalidYaml(f"the tag {event.tag} isn't supported", line)
            case _:
                raise InvalidYaml("unexpected end", line)
        if node.size > MAX_VALUES:
            raise InvalidYaml(f"aliases multiply to more than {MAX_VALUES} values", line)
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        return node

    def _enter(self, build: Any, line: int) -> Node:
        if self.depth >= MAX_DEPTH:
            raise InvalidYaml(f"nested more than {MAX_DEPTH} levels deep", line)
        self.depth += 1
        node: Node = build(line)
        self.depth -= 1
        return node

    def _sequence(self, line: int) -> Node:
        items: list[Node] = []
        for event in self.events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            items.append(self.build(event))
        return Node([item.value for item in items], line, 1 + sum(item.size for item in items), items)

    def _mapping(self, line: int) -> Node:
        members: dict[str, Node] = {}
        key_lines: dict[str, int] = {}
        merged: list[Node] = []
        for event in self.events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            key_line = _line(event)
            is_merge = isinstance(event, yaml.ScalarEvent) and event.implicit[0] and event.value == "<<"
            key = _key(self.build(event))
            value = self.build(next(self.events))
            if is_merge:
                merged += _merge_sources(value)
            elif key in members:
                raise InvalidYaml(f'the key "{key}" is there twice', key_line)
            else:
                members[key], key_lines[key] = value, key_line
        for source in merged:
            for key, value in source.members.items() if isinstance(source.members, dict) else ():
                if key not in members:
                    members[key], key_lines[key] = value, source.key_lines[key]
        size = 1 + sum(member.size for member in members.values())
        return Node({key: member.value for key, member in members.items()}, line, size, members, key_lines)


def _line(event: yaml.Event) -> int:
    return 0 if event.start_mark is None else event.start_mark.line


def _merge_sources(node: Node) -> list[Node]:
    sources = node.members if isinstance(node.members, list) else [node]
    for source in sources:
        if not isinstance(source.members, dict):
            raise InvalidYaml("`<<` takes a mapping or a list of mappings", source.line)
    return sources


def _key(node: Node) -> str:
    match node.value:
        case str() as text:
            return text
        case bool() as truth:
            return "true" if truth else "false"
        case int() | float() as number:
            return str(number)
        case _:
            raise InvalidYaml("a key must be text", node.line)


def _scalar(event: yaml.ScalarEvent, line: int) -> Any:
    match event.tag:
        case None if not event.implicit[0]:
            return event.value
        case "!" | "tag:yaml.org,2002:str" | "tag:yaml.org,2002:timestamp":
            return event.value
        case (
            None
            | "tag:yaml.org,2002:int"
            | "tag:yaml.org,2002:float"
            | "tag:yaml.org,2002:bool"
            | ("tag:yaml.org,2002:null")
        ):
            value = resolve(event.value)
        case tag:
            raise InvalidYaml(f"the tag {tag} isn't supported", line)
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidYaml(f"{event.value} can't be written in JSON", line)
    return value


_WORDS: Final[dict[str, Any]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(
        (".nan", ".NaN", ".NAN", ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF"), math.nan
    ),
}
_INTEGER: Final = re.compile(r"[-+]?(?:0[oO]?[0-7]+|0[xX][0-9a-fA-F]+|0[bB][01]+|0|[1-9][0-9]*)")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_MAX_DIGITS: Final = 70


def resolve(text: str) -> Any:
    """What an unquoted scalar means; text that means nothing else is itself.

    A float without fraction is written as a whole number, as Go's encoder does.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    digits = text if text[0] == "." else text.replace("_", "")
    if len(digits) <= _MAX_DIGITS and _INTEGER.fullmatch(digits):
        unsigned = digits.lstrip("+-")
        number = int(unsigned, 8 if unsigned[:1] == "0" and unsigned.isdigit() else 0)
        number = -number if digits[0] == "-" else number
        return number if -(2**63) <= number < 2**64 else float(number)
    if _FLOAT.fullmatch(digits):
        value = float(digits)
        if math.isinf(value):
            return text  # more than a float holds isn't a number to Go
        return int(value) if value.is_integer() and abs(value) < 1e21 else value
    return text
