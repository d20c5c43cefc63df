"""Compiled expressions: from text to something that can be evaluated, explained, pickled and cached."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from typing import Final, cast

from dray.api.features import ALL_GATES, FeatureGates
from dray.cel.ast import Checked
from dray.cel.checker import check
from dray.cel.devices import DeviceValue, to_attribute
from dray.cel.environment import Environment, device_environment, devices_environment
from dray.cel.errors import EvaluationError
from dray.cel.estimate import CostEstimate, estimate
from dray.cel.evaluation import DEFAULT_COST_LIMIT, Outcome
from dray.cel.explain import Explained, explain
from dray.cel.fast_path import Purpose, make_fast, to_bool
from dray.cel.interpreter import Interpreter
from dray.cel.parser import parse
from dray.cel.plan import Plan
from dray.cel.planner import make_plan
from dray.cel.reads import Reads, find_reads
from dray.cel.recursion import with_deep_stack
from dray.cel.types import Type
from dray.cel.validators import require_constraint_type, require_derived_type, require_selector_type, validate
from dray.cel.values import Value, type_name

CACHE_SIZE: Final = 2048
LARGE_CACHE_SIZE: Final = 32
LARGE_TEXT: Final = 512
"""A program takes about ninety times the memory of its text, so long ones have a small cache of their own."""
MAX_COST: Final = 1_000_000
"""An API server refuses new expressions whose estimate is above this."""
MAX_LENGTH: Final = 10 * 1024
"""... or whose text is longer, in bytes."""


class Program:
    """A compiled expression.

    It is evaluated on a `DeviceValue`, a list of them if it is a constraint, or a mapping of variables if generic.
    """

    def __init__(self, checked: Checked, plan: Plan, environment: Environment, purpose: Purpose) -> None:
        self.text: Final = checked.parsed.text
        self.purpose: Final = purpose
        self.environment: Final = environment
        self.checked: Final = checked
        self._plan = plan
        self._bound, self._fast = make_fast(plan, environment.name, purpose, self._evaluate_exactly)
        self.matches: Final[Callable[[Value], bool]] = (
            cast("Callable[[Value], bool]", self._fast)
            if self._fast is not None and purpose in ("selector", "constraint")
            else self._matches_exactly
        )
        """Whether the expression is true of a value. Raises EvaluationError, also if it isn't a bool."""

    def __reduce__(self) -> tuple[object, ...]:
        """Programs travel as text, and are compiled (or found in the cache) where they arrive."""
        environment = self.environment
        if environment.name == "generic":
            return compile_expression, (self.text, environment, self.purpose)
        features = (environment.stored, environment.consumable_capacity, environment.list_type_attributes)
        return _compile, (self.text, self.purpose, environment.name, *features)

    @property
    def output_type(self) -> Type:
        return self.checked.output_type

    @cached_property
    def _estimate(self) -> CostEstimate:
        return estimate(self.checked, self.environment)

    @property
    def max_cost_estimate(self) -> int:
        return self._estimate.max

    @property
    def min_cost_estimate(self) -> int:
        return self._estimate.min

    @cached_property
    def reads(self) -> Reads | None:
        """The attributes and capacities that it looks at; None if it may look at any."""
        return with_deep_stack(find_reads, self._plan)

    @cached_property
    def _interpreter(self) -> Interpreter:
        return Interpreter(self._plan)

    def evaluate(self, value: Value, *, cost_limit: int = DEFAULT_COST_LIMIT) -> Value:
        """The value of the expression. Raises EvaluationError."""
        if self._fast is not None and cost_limit >= self._bound:
            return self._fast(value)
        return self._evaluate_exactly(value, cost_limit)

    def _evaluate_exactly(self, value: Value, cost_limit: int = DEFAULT_COST_LIMIT) -> Value:
        outcome = self.run_exact(value, cost_limit)
        if outcome.error is not None:
            raise outcome.error
        return outcome.value

    def _matches_exactly(self, value: Value) -> bool:
        answer = self.evaluate(value)
        if type(answer) is bool:
            return answer
        raise EvaluationError(f"CEL result of type {type_name(answer)} could not be converted to bool")

    @property
    def fast_bound(self) -> int | None:
        """Cost limits from this on need no counting; None if every evaluation counts its cost."""
        return None if self._fast is None else self._bound

    def run_exact(self, value: Value, cost_limit: int = DEFAULT_COST_LIMIT) -> Outcome:
        """Evaluates with Kubernetes' exact rules on errors and cost."""
        inputs = self._inputs(value)
        for device in _devices_in(value):
            if device.error is not None:
                return Outcome(None, device.error, 0)
        outcome = self._interpreter.run(inputs, cost_limit)
        convert = _CONVERSIONS[self.purpose]
        if outcome.error is not None or convert is None:
            return outcome
        try:
            return outcome._replace(value=convert(outcome.value))
        except EvaluationError as error:
            return Outcome(None, error, outcome.cost)

    def explain(self, value: Value) -> list[Explained]:
        """Each sub-expression with the value that it has, the whole expression first."""
        for device in _devices_in(value):
            if device.error is not None:
                return [Explained(self.text, device.error)]
        return with_deep_stack(explain, self.checked, self._plan, self._inputs(value))

    def _inputs(self, value: Value) -> Mapping[str, Value]:
        match self.environment.name:
            case "device":
                return {"device": value}
            case "devices":
                return {"devices": value}
            case "generic":
                if isinstance(value, Mapping):
                    return value
                raise TypeError("the variables of a generic expression come as a mapping")


def _devices_in(value: Value) -> list[DeviceValue]:
    if isinstance(value, DeviceValue):
        return [value]
    if isinstance(value, list):
        return [device for device in value if isinstance(device, DeviceValue)]
    return []


_CONVERSIONS: Final[dict[Purpose, Callable[[Value], Value] | None]] = {
    "selector": to_bool,
    "constraint": to_bool,
    "derived": to_attribute,
    "generic": None,
}
_REQUIREMENTS: Final[dict[Purpose, Callable[[Checked, Environment], None]]] = {
    "selector": require_selector_type,
    "constraint": require_constraint_type,
    "derived": require_derived_type,
}


def compile_expression(text: str, environment: Environment, purpose: Purpose = "generic") -> Program:
    """Compiles in any environment; not cached. Raises CompileError."""
    checked = check(parse(text), environment)
    validate(checked)
    require = _REQUIREMENTS.get(purpose)
    if require is not None:
        require(checked, environment)
    plan = with_deep_stack(make_plan, checked, environment.functions)
    return Program(checked, plan, environment, purpose)


def _compile(text: str, purpose: Purpose, name: str, stored: bool, consumable: bool, lists: bool) -> Program:
    find = _find if len(text) <= LARGE_TEXT else _find_large
    return find(text, purpose, name, stored, consumable, lists)


def _compile_anew(text: str, purpose: Purpose, name: str, stored: bool, consumable: bool, lists: bool) -> Program:
    make_environment = devices_environment if name == "devices" else device_environment
    environment = make_environment(stored=stored, consumable_capacity=consumable, list_type_attributes=lists)
    return compile_expression(text, environment, purpose)


_find: Final = lru_cache(maxsize=CACHE_SIZE)(_compile_anew)
_find_large: Final = lru_cache(maxsize=LARGE_CACHE_SIZE)(_compile_anew)


def compile_selector(text: str, *, stored: bool = True, gates: FeatureGates = ALL_GATES) -> Program:
    """A selector over `device`. `stored` is what a scheduler uses; without it the gates decide what is known."""
    return _compile(
        text, "selector", "device", stored, "DRAConsumableCapacity" in gates, "DRAListTypeAttributes" in gates
    )


def compile_derived(text: str, *, stored: bool = True, gates: FeatureGates = ALL_GATES) -> Program:
    """An attribute computed from `device`; evaluates to a DeviceAttribute."""
    return _compile(
        text, "derived", "device", stored, "DRAConsumableCapacity" in gates, "DRAListTypeAttributes" in gates
    )


def compile_constraint(text: str, *, stored: bool = True, gates: FeatureGates = ALL_GATES) -> Program:
    """A constraint over `devices` (KEP-5254)."""
    return _compile(
        text, "constraint", "devices", stored, "DRAConsumableCapacity" in gates, "DRAListTypeAttributes" in gates
    )


def forget_programs() -> None:
    """Empty the cache of compiled expressions; benchmarks use it to start cold."""
    _find.cache_clear()
    _find_large.cache_clear()
