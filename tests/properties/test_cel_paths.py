"""Generated code and the exact interpreter agree wherever both can answer."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dray.api.devices import Device, DeviceAttribute
from dray.cel.devices import bind_device
from dray.cel.environment import device_environment
from dray.cel.errors import CompileError, EvaluationError
from dray.cel.program import Program, compile_constraint, compile_expression
from dray.cel.values import Value
from tests.properties.cel_expressions import BOOLEANS, DEVICES

EXAMPLES = 300
MANY_EXAMPLES = 10_000


def compiled(text: str) -> Program:
    try:
        return compile_expression(text, device_environment(), "selector")
    except CompileError:
        assume(False)
        raise


def answer_of(program: Program, value: Value) -> bool | str:
    try:
        return program.matches(value)
    except EvaluationError:
        return "error"


def check_paths(text: str, device: Device) -> None:
    program = compiled(text)
    value = bind_device("d", device)
    outcome = program.run_exact(value)
    assert answer_of(program, value) == ("error" if outcome.error is not None else outcome.value)
    if program.fast_bound is not None and not value.oversize:
        assert outcome.cost <= program.fast_bound


relaxed = settings(
    deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow, HealthCheck.data_too_large]
)


@given(BOOLEANS, DEVICES)
@settings(relaxed, max_examples=EXAMPLES)
def test_both_paths_give_the_same_answer(text: str, device: Device) -> None:
    check_paths(text, device)


@pytest.mark.slow
@given(BOOLEANS, DEVICES)
@settings(relaxed, max_examples=MANY_EXAMPLES)
def test_both_paths_give_the_same_answer_for_many_expressions(text: str, device: Device) -> None:
    check_paths(text, device)


@given(BOOLEANS, DEVICES, st.sampled_from(("model", "index", "flag", "other.com/model")))
@settings(relaxed, max_examples=EXAMPLES)
def test_what_an_expression_does_not_read_does_not_matter(text: str, device: Device, name: str) -> None:
    program = compiled(text)
    assume(program.reads is not None)
    assert program.reads is not None
    full_name = name if "/" in name else f"d/{name}"
    assume(full_name not in program.reads.attributes)
    changed = msgspec.structs.replace(
        device, attributes={**device.attributes, name: DeviceAttribute(string_value="changed")}
    )
    before, after = (program.run_exact(bind_device("d", each)) for each in (device, changed))
    assert (before.value, str(before.error)) == (after.value, str(after.error))


@given(BOOLEANS, DEVICES)
@settings(relaxed, max_examples=EXAMPLES // 3)
def test_an_explanation_starts_with_the_result(text: str, device: Device) -> None:
    compiled(text)
    program = compile_expression(text, device_environment())
    value = bind_device("d", device)
    outcome = program.run_exact(value)
    told = program.explain(value)[0].value
    assert (told == outcome.value) if outcome.error is None else isinstance(told, EvaluationError)


CONSTRAINTS = (
    "devices.map(d, d.attributes['d'].index).max() - devices.map(d, d.attributes['d'].index).min() < 3",
    "devices.all(d, devices.filter(e, d != e && d.attributes['d'].index == e.attributes['d'].index + 1).size() <= 1)",
    "devices.exists(d, d.capacity['d'].mem.compareTo(quantity('40Gi')) > 0)",
    "devices.map(d, d.attributes['d'].?model.orValue('')).distinct().size() == devices.size()",
    "devices.all(i, d, i == 0 || d.attributes['d'].model == devices[0].attributes['d'].model)",
    "devices.map(d, d.attributes['d'].nums).all(n, n.includes(1))",
    "devices.filter(d, has(d.attributes['d'].flag)).all(d, d.attributes['d'].flag)",
    "size(devices) > 1 && devices[0] == devices[1]",
)


@given(st.sampled_from(CONSTRAINTS), st.lists(DEVICES, max_size=5))
@settings(relaxed, max_examples=EXAMPLES)
def test_both_paths_give_the_same_answer_for_sets_of_devices(text: str, devices: list[Device]) -> None:
    program = compile_constraint(text)
    values = [bind_device("d", device) for device in devices]
    outcome = program.run_exact(values)
    assert answer_of(program, values) == ("error" if outcome.error is not None else outcome.value)
