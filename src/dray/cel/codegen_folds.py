"""Comprehensions as Python loops, each in a function of its own inside the generated one."""

from __future__ import annotations

from dray.cel.codegen_context import DEVICE, DEVICES, PLAIN, Code, Context
from dray.cel.plan import Attribute, Call, Constant, Fold, Logic, NewList, Node, NotStrictlyFalse, Ternary, Variable


def write_fold(context: Context, node: Fold) -> Code:
    if isinstance(node.range, Constant) and node.range.value == []:
        return _write_bind(context, node)
    outer, context.lines = context.lines, []
    name = context.new_name("fold")
    accumulator = f"a{node.accumulator}"
    try:
        header, role = _write_header(context, node)
        init = context.expression(node.init)
        context.slots[node.accumulator] = Code(accumulator, init.kind)
        keeps_devices = role == DEVICES and _keeps_elements(node)
        if keeps_devices:
            context.slots[node.accumulator] = Code(accumulator, "list", DEVICES)
        # An empty list or map grows in the loop, so it has to be a new one each time.
        start = "[]" if init.value == [] else "MutableMap()" if init.value == {} else init.text
        loop = _write_body(context, node, accumulator)
        result = context.expression(node.result)
        inner = context.lines
    finally:
        context.lines = outer
    # Functions for comprehensions in this one come first; they may use the variables of the loop.
    body = [*inner, f"{accumulator} = {start}", header, *(f"    {line}" for line in loop), f"return {result.text}"]
    context.lines += [f"def {name}():", *(f"    {line}" for line in body)]
    return Code(f"{name}()", result.kind, result.role)


def _write_bind(context: Context, node: Fold) -> Code:
    """`cel.bind`: the variable is set on the way to the result."""
    init = context.expression(node.init)
    name = f"a{node.accumulator}"
    may_be_list = init.kind in ("", "list") and init.role in (PLAIN, DEVICES)
    context.slots[node.accumulator] = Code(name, init.kind, init.role)
    result = context.expression(node.result)
    value = f"bindable({init.text})" if may_be_list else init.text
    return Code(f"({name} := {value}, {result.text})[1]", result.kind, result.role)


def _write_header(context: Context, node: Fold) -> tuple[str, str]:
    """The line of the loop, and the role of what it iterates over."""
    items = context.expression(node.range)
    element = DEVICE if items.role == DEVICES else PLAIN
    if node.second is None:
        context.slots[node.first] = Code(f"v{node.first}", "", element)
        source = items.text if items.kind == "list" else f"elements({items.text})"
        return f"for v{node.first} in {source}:", items.role
    context.slots[node.first] = Code(f"v{node.first}")
    context.slots[node.second] = Code(f"v{node.second}", "", element)
    return f"for v{node.first}, v{node.second} in pairs({items.text}):", items.role


def _keeps_elements(node: Fold) -> bool:
    """Whether this is `filter`: what it makes are elements of what it iterates over."""
    match node.step:
        case Ternary(then=Attribute(base=Call(function="_+_", arguments=(_, NewList(elements=(element,)))))):
            return _is_variable(element, node.first)
    return False


def _write_body(context: Context, node: Fold, accumulator: str) -> list[str]:
    lines: list[str] = []
    if not (isinstance(node.condition, Constant) and node.condition.value is True):
        quick = _write_quantifier(context, node, accumulator)
        if quick is not None:
            return quick
        lines += [f"if not {context.condition(node.condition)}:", "    break"]
    return lines + _write_step(context, node, node.step, accumulator)


def _write_quantifier(context: Context, node: Fold, accumulator: str) -> list[str] | None:
    """`all` and `exists` end as soon as the answer is known."""
    step, condition = node.step, node.condition
    if not isinstance(step, Logic) or not isinstance(condition, NotStrictlyFalse):
        return None
    if not _is_variable(step.left, node.accumulator):
        return None
    predicate = context.condition(step.right)
    if step.stops_at:
        return [f"if {predicate}:", f"    {accumulator} = True", "    break"]
    return [f"if not {predicate}:", f"    {accumulator} = False", "    break"]


def _write_step(context: Context, node: Fold, step: Node, accumulator: str) -> list[str]:
    match step:
        case Call(function="_+_", arguments=(left, NewList(elements=(element,), optional=optional))) if (
            not optional and _is_variable(left, node.accumulator)
        ):
            return [f"{accumulator}.append({context.expression(element).text})"]
        case Call(function="_+_", arguments=(left, Constant(value=list(items)))) if _is_variable(
            left, node.accumulator
        ):
            return [f"{accumulator}.extend({context.name_of(items)})"]
        case Ternary(condition=condition, then=Attribute(base=base, qualifiers=()), otherwise=otherwise) if (
            not isinstance(base, Variable) and _is_variable(otherwise, node.accumulator)
        ):
            inner = _write_step(context, node, base, accumulator)
            return [f"if {context.condition(condition)}:", *(f"    {line}" for line in inner)]
    return [f"{accumulator} = {context.expression(step).text}"]


def _is_variable(node: Node, slot: int) -> bool:
    return (
        isinstance(node, Attribute)
        and not node.qualifiers
        and isinstance(node.base, Variable)
        and node.base.slot == slot
    )
