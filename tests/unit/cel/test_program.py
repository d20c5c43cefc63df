from __future__ import annotations

import pickle

import pytest

from dray.api.devices import DeviceAttribute
from dray.api.features import ALL_GATES
from dray.cel.environment import generic_environment
from dray.cel.errors import CompileError, CostLimitExceeded, EvaluationError
from dray.cel.program import compile_constraint, compile_derived, compile_expression, compile_selector
from dray.cel.types import INT
from tests.unit.cel.builders import make_device
from tests.unit.cel.test_estimate import GRID, RING

DEVICE = make_device("gpu.example.com", {"memory": "80Gi"}, model="A100", index=3, roots=["a", "b"])
SELECTOR = (
    'device.attributes["gpu.example.com"].model == "A100" && '
    'device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0'
)


def test_a_selector_matches_or_not() -> None:
    assert compile_selector(SELECTOR).matches(DEVICE) is True
    assert compile_selector('device.driver == "other"').matches(DEVICE) is False
    assert compile_selector(SELECTOR).evaluate(DEVICE) is True


def test_a_selector_that_gives_no_bool_is_an_error() -> None:
    program = compile_selector('device.attributes["gpu.example.com"].model')
    message = "could not be converted to bool"
    with pytest.raises(EvaluationError, match=message):
        program.matches(DEVICE)
    with pytest.raises(EvaluationError, match=message):
        program.evaluate(DEVICE)
    assert message in str(program.run_exact(DEVICE).error)


def test_errors_are_raised_from_the_exact_path() -> None:
    with pytest.raises(EvaluationError, match="no such key: missing"):
        compile_selector('device.attributes["d"].missing == 1').matches(DEVICE)
    assert compile_selector('device.attributes["d"].missing == 1 || true').matches(DEVICE) is True


def test_the_cost_limit_is_kept_on_both_paths() -> None:
    program = compile_selector(SELECTOR)
    cost = program.run_exact(DEVICE).cost
    assert program.evaluate(DEVICE, cost_limit=cost) is True
    with pytest.raises(CostLimitExceeded):
        program.evaluate(DEVICE, cost_limit=cost - 1)


def test_a_derived_attribute() -> None:
    program = compile_derived('device.attributes["gpu.example.com"].roots')
    assert program.evaluate(DEVICE) == DeviceAttribute(string_values=("a", "b"))
    assert compile_derived('device.driver + "/x"').evaluate(DEVICE) == DeviceAttribute(string_value="gpu.example.com/x")
    with pytest.raises(CompileError):
        compile_derived("device.attributes")


def test_features_decide_about_new_expressions_only() -> None:
    gates = ALL_GATES.with_changes({"DRAListTypeAttributes": False, "DRAConsumableCapacity": False})
    for text in ('device.attributes["d"].x.includes(1)', "device.allowMultipleAllocations"):
        compile_selector(text, gates=gates)
        compile_selector(text, stored=False)
        with pytest.raises(CompileError):
            compile_selector(text, stored=False, gates=gates)


def ring(*numbers: int) -> list[object]:
    return [make_device("mla.example.com", deviceid=number) for number in numbers]


def grid(*cells: tuple[int, int]) -> list[object]:
    return [make_device("mla.example.com", row=row, col=col) for row, col in cells]


def test_the_ring_of_kep_5254() -> None:
    program = compile_constraint(RING)
    assert program.matches(ring(4, 5, 6, 7)) is True
    assert program.matches(ring(7, 5, 4, 6)) is True
    assert program.matches(ring(0, 1, 2, 4)) is False
    assert program.matches(ring(0, 1, 2)) is False


def test_the_grid_of_kep_5254() -> None:
    program = compile_constraint(GRID)
    assert program.matches(grid((0, 0), (0, 1), (1, 0), (1, 1))) is True
    assert program.matches(grid((2, 3), (3, 3), (3, 4), (2, 4))) is True
    assert program.matches(grid((0, 0), (0, 1), (0, 2), (0, 3))) is False
    assert program.matches(grid((0, 0), (0, 1), (1, 0), (2, 2))) is False


@pytest.mark.parametrize("text", [RING, GRID])
def test_constraints_agree_on_both_paths_and_say_what_they_read(text: str) -> None:
    program = compile_constraint(text)
    assert program.max_cost_estimate < 1_000_000
    for devices in (ring(1, 2, 3, 4), grid((0, 0), (0, 1), (1, 0), (1, 1))):
        outcome = program.run_exact(devices)
        if outcome.error is None:
            assert program.matches(devices) is outcome.value
        else:
            with pytest.raises(EvaluationError):
                program.matches(devices)


def test_include_is_another_name_of_includes() -> None:
    for name in ("include", "includes"):
        assert compile_selector(f'device.attributes["gpu.example.com"].roots.{name}("a")').matches(DEVICE)
        assert compile_selector(f'device.attributes["gpu.example.com"].index.{name}(3)').matches(DEVICE)


def test_programs_are_compiled_once_for_a_text_and_an_environment() -> None:
    assert compile_selector(SELECTOR) is compile_selector(SELECTOR)
    assert compile_selector(SELECTOR) is not compile_selector(SELECTOR, stored=False)


def test_programs_can_be_pickled() -> None:
    for program in (compile_selector(SELECTOR), compile_constraint(RING), compile_derived("device.driver")):
        copy = pickle.loads(pickle.dumps(program))
        assert (copy.text, copy.purpose, copy.output_type) == (program.text, program.purpose, program.output_type)
    generic = compile_expression("x + 1", generic_environment({"x": INT}))
    assert pickle.loads(pickle.dumps(generic)).evaluate({"x": 1}) == 2


def test_bad_patterns_and_indexes_are_found_when_the_program_is_built() -> None:
    for text in ('"a".find("(") == ""', '{"a": 1}[dyn(b"a")] == 1', 'int("x") == 1'):
        with pytest.raises(CompileError) as caught:
            compile_selector(text)
        assert caught.value.kind == "internal"
        assert caught.value.position is not None


def test_a_missing_variable_is_an_error() -> None:
    outcome = compile_expression("x + 1", generic_environment({"x": INT})).run_exact({})
    assert "no such attribute" in str(outcome.error)
