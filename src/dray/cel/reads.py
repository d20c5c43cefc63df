"""Which attributes and capacities of a device an expression looks at: devices that agree on them are alike to it.

The plan is evaluated over symbols instead of values: a symbol is a device, its `attributes` or `capacity`, one domain
of these, or a list of devices; everything else is of no interest. A symbol that is used in any other way than by
looking up a constant name (compared as a whole, iterated over, indexed with a computed key) could mean anything, and
then nothing is known.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias, cast

from dray.cel.plan import (
    Attribute,
    Call,
    Constant,
    Equality,
    Fold,
    Has,
    IsOneOf,
    Logic,
    NewList,
    NewMap,
    NewMessage,
    Node,
    NotStrictlyFalse,
    OptionalOr,
    Plan,
    Qualifier,
    Resolved,
    Ternary,
    Variable,
)


class Reads(NamedTuple):
    """Names are fully qualified: `domain/name`."""

    attributes: frozenset[str]
    capacities: frozenset[str]
    driver: bool
    sharing: bool
    """Whether it looks at `allowMultipleAllocations`."""


class _Unknown(Exception):
    """The expression may read anything."""


class _Domain(NamedTuple):
    kind: str
    name: str


Symbol: TypeAlias = str | _Domain | None
_DEVICE: Final = "device"
_DEVICES: Final = "devices"
_KINDS: Final = ("attributes", "capacity")
MAX_VISITS: Final = 10_000
"""Branches of ternaries share their qualifiers, so a small plan can be a very large tree."""


def find_reads(plan: Plan) -> Reads | None:
    """What the expression reads, None if that can't be known."""
    reader = _Reader()
    try:
        reader.consume(plan.root)
    except _Unknown:
        return None
    names = reader.names
    return Reads(frozenset(names["attributes"]), frozenset(names["capacity"]), reader.driver, reader.sharing)


@dataclass(slots=True)
class _Reader:
    names: dict[str, set[str]] = field(default_factory=lambda: {kind: set() for kind in _KINDS})
    driver: bool = False
    sharing: bool = False
    slots: dict[int, Symbol] = field(default_factory=dict)
    visits: int = 0

    def consume(self, node: Node) -> None:
        """The value of the node is used as a whole."""
        if self.visit(node) is not None:
            raise _Unknown

    def visit(self, node: Node) -> Symbol:
        self.visits += 1
        if self.visits > MAX_VISITS:
            raise _Unknown
        match node:
            case Constant():
                return None
            case Attribute() | Ternary():
                return self._resolve(node)
            case Has(attribute=attribute):
                self._resolve(attribute)
                return None
            case Logic(left=left, right=right) | Equality(left=left, right=right):
                self.consume(left)
                self.consume(right)
                return None
            case Call():
                return self._visit_call(node)
            case NotStrictlyFalse(argument=argument) | IsOneOf(argument=argument):
                self.consume(argument)
                return None
            case OptionalOr(left=left, right=right):
                return _join(self.visit(left), self.visit(right))
            case NewList(elements=elements):
                return self._visit_list(elements)
            case NewMap(entries=entries):
                for entry in entries:
                    self.consume(entry.key)
                    self.consume(entry.value)
                return None
            case NewMessage(fields=fields):
                for message_field in fields:
                    self.consume(message_field.value)
                return None
            case Fold():
                return self._visit_fold(node)

    def _resolve(self, node: Resolved) -> Symbol:
        if isinstance(node, Ternary):
            self.consume(node.condition)
            return _join(self._resolve(node.then), self._resolve(node.otherwise))
        symbol = self._base(node.base)
        for qualifier in node.qualifiers:
            if not qualifier.constant and self._resolve(cast("Resolved", qualifier.key)) is not None:
                raise _Unknown
            symbol = self._qualify(symbol, qualifier)
        return symbol

    def _base(self, base: Variable | Node) -> Symbol:
        if not isinstance(base, Variable):
            return self.visit(base)
        if base.slot is not None:
            return self.slots.get(base.slot)
        return base.name if base.name in (_DEVICE, _DEVICES) else None

    def _qualify(self, symbol: Symbol, qualifier: Qualifier) -> Symbol:
        if symbol is None:
            return None
        if symbol == _DEVICES:
            return _DEVICE
        key = qualifier.key
        if not qualifier.constant or not isinstance(key, str):
            raise _Unknown
        if isinstance(symbol, _Domain):
            self.names[symbol.kind].add(f"{symbol.name}/{key}")
            return None
        if symbol in _KINDS:
            return _Domain(symbol, key)
        if key in _KINDS:
            return key
        if key == "driver":
            self.driver = True
        elif key == "allowMultipleAllocations":
            self.sharing = True
        else:
            raise _Unknown
        return None

    def _visit_call(self, node: Call) -> Symbol:
        arguments = node.arguments
        match node.function, arguments:
            case "size", (argument,):
                if self.visit(argument) not in (None, _DEVICES):
                    raise _Unknown
                return None
            case "@in", (Constant(value=str(name)), container):
                symbol = self.visit(container)
                if isinstance(symbol, _Domain):
                    self.names[symbol.kind].add(f"{symbol.name}/{name}")
                elif symbol is not None:
                    raise _Unknown
                return None
            case "_+_", (left, right):
                return _join(self.visit(left), self.visit(right))
        for argument in arguments:
            self.consume(argument)
        return None

    def _visit_list(self, elements: tuple[Node, ...]) -> Symbol:
        symbols = [self.visit(element) for element in elements]
        if all(symbol is None for symbol in symbols):
            return None
        if all(symbol == _DEVICE for symbol in symbols):
            return _DEVICES
        raise _Unknown

    def _visit_fold(self, node: Fold) -> Symbol:
        symbol = self.visit(node.range)
        if symbol not in (None, _DEVICES):
            raise _Unknown
        element = _DEVICE if symbol == _DEVICES else None
        self.slots[node.first] = None if node.second is not None else element
        if node.second is not None:
            self.slots[node.second] = element
        self.slots[node.accumulator] = self.visit(node.init)
        self.consume(node.condition)
        self.slots[node.accumulator] = _join(self.slots[node.accumulator], self.visit(node.step))
        return self.visit(node.result)


def _join(left: Symbol, right: Symbol) -> Symbol:
    """What a value is that may be either. A list that holds devices in one case counts as a list of devices."""
    if left == right or right is None:
        return left
    if left is None:
        return right
    raise _Unknown
