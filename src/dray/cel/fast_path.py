"""When generated code may run, and what it is wrapped in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, NamedTuple, TypeAlias, cast

from dray.cel.bounds import find_bound
from dray.cel.codegen import generate
from dray.cel.codegen_context import Unsupported
from dray.cel.devices import to_attribute
from dray.cel.errors import EvaluationError
from dray.cel.evaluation import DEFAULT_COST_LIMIT
from dray.cel.plan import Plan
from dray.cel.recursion import with_deep_stack
from dray.cel.values import Value, type_name

Purpose: TypeAlias = Literal["selector", "derived", "constraint", "generic"]
Evaluate: TypeAlias = Callable[[Value], Value]

_GUARDS: Final = {
    "device": "device.oversize",
    "devices": "len(devices) > {most} or any(d.oversize for d in devices)",
}


def to_bool(value: Value) -> bool:
    """The result of a selector or constraint. Raises EvaluationError."""
    if type(value) is bool:
        return value
    raise EvaluationError(f"CEL result of type {type_name(value)} could not be converted to bool")


class Fast(NamedTuple):
    bound: int
    """The function may be used for cost limits from here on."""
    function: Evaluate | None
    """None: every evaluation has to be exact."""


def make_fast(plan: Plan, environment: str, purpose: Purpose, exact: Evaluate) -> Fast:
    """The generated function of a plan. It calls `exact` wherever it can't be sure of its answer."""
    if environment not in _GUARDS:
        return Fast(0, None)
    bound = with_deep_stack(find_bound, plan, DEFAULT_COST_LIMIT)
    if bound.cost > DEFAULT_COST_LIMIT or not bound.is_small_work:
        return Fast(bound.cost, None)
    result_type = plan.types.get(plan.root.id)
    is_bool = result_type is not None and result_type.name == "bool"
    wrap = {"selector": "" if is_bool else "to_bool", "constraint": "" if is_bool else "to_bool"}.get(purpose, "")
    if purpose == "derived":
        wrap = "to_attribute"
    guard = _GUARDS[environment].format(most=bound.devices) if bound.limited else ""
    try:
        source, namespace = generate(plan, argument=environment, wrap=wrap, guard=guard)
    except Unsupported:
        return Fast(bound.cost, None)
    namespace |= {"exact": exact, "to_bool": to_bool, "to_attribute": to_attribute}
    exec(compile(source, "<cel>", "exec"), namespace)
    return Fast(bound.cost, cast("Evaluate", namespace["fast"]))
