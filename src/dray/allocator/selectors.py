"""The seam to CEL: expressions compiled once, devices as expressions see them, and what an expression reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from dray.allocator.statistics import Statistics
from dray.api.devices import Device, DeviceAttribute
from dray.api.features import FeatureGates
from dray.cel.devices import DeviceValue, bind_device
from dray.cel.errors import CelError, CompileError
from dray.cel.program import Program, compile_constraint, compile_derived, compile_selector

__all__ = ["CelError", "DeviceValue", "Expression", "bind", "constraint", "derived_attribute", "selector"]

bind: Final[Callable[[str, Device], DeviceValue]] = bind_device


class Expression:
    """A compiled expression, or why it can't be compiled. That counts only when the expression is needed."""

    __slots__ = ("attributes", "error", "program", "text")

    def __init__(self, text: str, compile: Callable[[str], Program]) -> None:
        self.text: Final = text
        self.program: Program | None = None
        self.error: CompileError | None = None
        self.attributes: frozenset[str] | None = frozenset()
        """Fully qualified names of the attributes that it reads; None: it may read any."""
        try:
            self.program = compile(text)
            reads = self.program.reads
            self.attributes = None if reads is None else reads.attributes
        except CompileError as error:
            self.error = error

    def matches(self, value: DeviceValue, statistics: Statistics) -> bool:
        """Raises CelError: also if the expression doesn't compile, or if the result isn't a bool."""
        if self.program is None:
            assert self.error is not None
            raise self.error
        statistics.selector_evaluations += 1
        return self.program.matches(value)

    def matches_set(self, values: Sequence[DeviceValue]) -> bool:
        """For an expression over a set of devices, in the order given."""
        assert self.program is not None, "a constraint that doesn't compile is refused before any search"
        return self.program.matches(list(values))

    def attribute(self, value: DeviceValue) -> DeviceAttribute:
        """For an expression that computes an attribute."""
        if self.program is None:
            assert self.error is not None
            raise self.error
        found = self.program.evaluate(value)
        assert isinstance(found, DeviceAttribute)
        return found


def selector(text: str, gates: FeatureGates) -> Expression:
    return Expression(text, lambda source: compile_selector(source, gates=gates))


def derived_attribute(text: str, gates: FeatureGates) -> Expression:
    return Expression(text, lambda source: compile_derived(source, gates=gates))


def constraint(text: str, gates: FeatureGates) -> Expression:
    return Expression(text, lambda source: compile_constraint(source, gates=gates))
