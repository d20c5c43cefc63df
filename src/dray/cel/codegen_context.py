"""What the parts of the code generator share: pieces of code, and names for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final, NamedTuple

from dray.api.quantities import Quantity
from dray.cel.fast_runtime import NAMESPACE
from dray.cel.plan import Node, Plan
from dray.cel.values import Value, type_name

DEVICE: Final = "device"
DEVICES: Final = "devices"
ATTRIBUTES: Final = "attributes"
CAPACITY: Final = "capacity"
ATTRIBUTE_DOMAIN: Final = "attribute domain"
CAPACITY_DOMAIN: Final = "capacity domain"
QUANTITY: Final = "quantity"
PLAIN: Final = ""
"""Roles: where in the input a value comes from, if that is certain."""


class Unsupported(Exception):
    """There is no fast code for this expression."""


class Code(NamedTuple):
    """A Python expression, and what is known of its value.

    `kind` is the name of its type where that is certain. The checker's types aren't: it lets a list of dynamic values
    become a list of whatever it is used as, so what comes out of containers may be anything.
    """

    text: str
    kind: str = ""
    role: str = PLAIN
    constant: bool = False
    value: Value = None
    plain: str = ""
    """The same without a default for missing domains, which is quicker and good enough where a value is needed."""


class Context(ABC):
    """Writes one function. `lines` are the statements before its result: functions for the comprehensions in it."""

    def __init__(self, plan: Plan) -> None:
        self.types = plan.types
        self.lines: list[str] = []
        self.namespace: dict[str, object] = dict(NAMESPACE)
        self.slots: dict[int, Code] = {}
        self._names = 0

    @abstractmethod
    def expression(self, node: Node) -> Code:
        """The code of a node. Raises Unsupported."""

    def condition(self, node: Node) -> str:
        """A sub-expression that has to be a bool."""
        code = self.expression(node)
        return code.text if code.kind == "bool" else f"boolean({code.text})"

    def new_name(self, prefix: str) -> str:
        self._names += 1
        return f"{prefix}{self._names}"

    def name_of(self, value: object) -> str:
        """A name by which generated code finds an object."""
        name = self.new_name("k")
        self.namespace[name] = value
        return name

    def constant(self, value: Value) -> Code:
        kind = type_name(value)
        if type(value) in (str, int, bool, bytes) or value is None:
            return Code(repr(value), kind, PLAIN, True, value)
        role = QUANTITY if type(value) is Quantity else PLAIN
        return Code(self.name_of(value), kind, role, True, value)

    def branch(self, value: Code, kind: str, fast: str, slow: str) -> str:
        """`fast` if the value is of a Python class, else `slow`; `@` in both stands for the value."""
        name = self.new_name("t")
        return f"({_fill(fast, name)} if ({name} := {value.text}).__class__ is {kind} else {_fill(slow, name)})"


def _fill(template: str, name: str) -> str:
    """The template starts with its placeholder or has it as first argument; what follows may hold any character."""
    before, _, after = template.partition("@")
    return f"{before}{name}{after}"
