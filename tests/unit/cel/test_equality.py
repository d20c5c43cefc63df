from __future__ import annotations

import pytest

from tests.unit.cel.builders import error_of, run, value_of


@pytest.mark.parametrize(
    "text",
    [
        "dyn(1) == 1.0 && dyn(1u) == 1 && dyn(1.5) != 1",
        "dyn('1') != 1 && dyn(true) != 1",
        "[1, 2] == dyn([1.0, 2.0])",
        "{'a': [1]} == dyn({'a': [1.0]})",
        "null == null && dyn(1) != null",
        "double('NaN') != double('NaN')",
        "optional.of(1) != optional.none() && optional.none() == optional.none()",
        "timestamp('2024-01-01T00:00:00Z') == timestamp('2024-01-01T02:00:00+02:00')",
        "type(1) == int && type(1u) != int",
        "quantity('1Ki') == quantity('1024')",
        "semver('1.0.0+a') == semver('1.0.0+b')",
        # Doubles and integers compare as doubles, unlike in Python.
        "dyn(9007199254740993) == 9007199254740992.0",
    ],
)
def test_these_hold(text: str) -> None:
    assert value_of(text) is True


@pytest.mark.parametrize(
    "text",
    ["dyn(quantity('1')) == '1'", "dyn(semver('1.0.0')) == 1", "dyn(ip('::1')) == '::1'"],
)
def test_types_of_kubernetes_compare_with_their_own_kind_only(text: str) -> None:
    assert "no such overload" in str(error_of(text))
    assert value_of(text.replace("==", "!=")) is True


def test_a_sum_of_quantities_equals_on_the_left_only() -> None:
    assert value_of("quantity('1').add(quantity('2')) == quantity('3')") is True
    error_of("quantity('3') == quantity('1').add(quantity('2'))")
    assert value_of("quantity('3') != quantity('1').add(quantity('2'))") is True


def test_a_list_takes_elements_that_cannot_be_compared_for_equal_unless_it_was_joined() -> None:
    assert value_of("[dyn(quantity('3'))] == [dyn('x')]") is True
    assert run("[dyn(quantity('3'))] + [dyn(1)] == [dyn('x')] + [dyn(1)]").error is not None


@pytest.mark.parametrize(
    "text", ["1 < 1.5", "2u > 1", "-1 < 1u", "b'a' < b'b'", "false < true", "duration('1s') < duration('1m')"]
)
def test_order_is_defined_across_number_types(text: str) -> None:
    assert value_of(text) is True


@pytest.mark.parametrize("text", ["dyn('a') < 1", "double('NaN') < 1.0", "dyn([1]) < dyn([2])", "dyn(null) < dyn(1)"])
def test_what_has_no_common_order_is_an_error(text: str) -> None:
    error_of(text)
