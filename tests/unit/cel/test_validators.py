from __future__ import annotations

import pytest

from dray.cel.ast import Checked
from dray.cel.checker import check
from dray.cel.environment import Environment, device_environment
from dray.cel.errors import CompileError
from dray.cel.parser import parse
from dray.cel.validators import require_derived_type, require_selector_type, validate

NEW_WITHOUT_LISTS = device_environment(stored=False, list_type_attributes=False)


def checked(text: str, environment: Environment | None = None) -> Checked:
    return check(parse(text), environment or device_environment())


@pytest.mark.parametrize(
    "text",
    [
        "duration('1h30m')",
        "timestamp('2024-02-29T23:59:59+02:00')",
        "timestamp(0)",
        "'a'.matches('^[a-z]+$')",
        "matches('a', '(')",
        "[1, 2]",
        "[optional.none(), optional.of(1)]",
        "'%s %d'.format([1.5, 2])",
        "'%s'.format([[1, 'a', {1: null, 'b': 2u}]])",
        "'%d%%'.format([dyn('a')])",
        "'%.3f %e %X %o %b'.format([1.5, 'NaN', 'a', 1, true])",
        "device.driver.format([1, 2, 3])",
        "'%s'.format(device.attributes['d'].x)",
        "[?optional.of(1), 2]",
    ],
)
def test_what_is_fine(text: str) -> None:
    validate(checked(text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("duration('1x')", "invalid duration argument"),
        ("duration('')", "invalid duration argument"),
        ("timestamp('x')", "invalid timestamp argument"),
        ("timestamp(253402300800)", "invalid timestamp argument"),
        ("false && 'a'.matches('(')", "invalid matches argument"),
        ("matches('(', 'a')", "invalid matches argument"),
        ("[1, 'a']", "expected type 'int' but found 'string'"),
        ("[1, null]", "expected type 'int' but found 'null_type'"),
        ("[optional.of(1), optional.of(dyn(1))]", "expected type"),
        ("{1: 1, 'a': 1}", "expected type 'int' but found 'string'"),
        ("{1: 1, 2: 'a'}", "expected type 'int' but found 'string'"),
        ("[int, string]", "expected type"),
        ("[?dyn(1)]", "optional"),
        ("{?'a': dyn(1)}", "optional"),
        ("'x'.format([1])", "too many arguments supplied"),
        ("'%s'.format([])", "index 0 out of range"),
        ("'%'.format([1])", "unexpected end of string"),
        ("'%z'.format([1])", 'unrecognized formatting clause "z"'),
        ("'%D'.format([1])", 'unrecognized formatting clause "D"'),
        ("'%.f'.format([1.0])", "precision"),
        ("'%.3'.format([1.0])", "precision"),
        ("'%d'.format([1.5])", "decimal clause can only be used on integers, was given double"),
        ("'%f'.format([1])", "fixed-point clause"),
        ("'%e'.format([1u])", "scientific clause"),
        ("'%x'.format([1.5])", "formatted as hex"),
        ("'%s'.format([quantity('1')])", "string clause can only be used on"),
        ("'%s'.format([[optional.of(1)]])", "string clause can only be used on"),
    ],
)
def test_what_can_not_be_right(text: str, message: str) -> None:
    with pytest.raises(CompileError, match=message) as caught:
        validate(checked(text))
    assert caught.value.kind == "invalid"


@pytest.mark.parametrize("text", ["true", "device.attributes['d'].x", "device.attributes['d'].x && true"])
def test_a_selector_gives_a_bool_or_an_attribute(text: str) -> None:
    for environment in (device_environment(), NEW_WITHOUT_LISTS):
        require_selector_type(checked(text, environment), environment)


@pytest.mark.parametrize("text", ["1", "[true]", "optional.of(true)", "dyn(true)"])
def test_a_selector_gives_nothing_else(text: str) -> None:
    with pytest.raises(CompileError, match="must evaluate to bool or the unknown type"):
        require_selector_type(checked(text, NEW_WITHOUT_LISTS), NEW_WITHOUT_LISTS)


@pytest.mark.parametrize("text", ["true", "1", "'a'", "semver('1.2.3')", "dyn(1)", "device.attributes['d'].x"])
def test_a_derived_attribute_gives_what_an_attribute_holds(text: str) -> None:
    require_derived_type(checked(text), device_environment())
    require_derived_type(checked(f"[{text}]"), device_environment())
    require_derived_type(checked(text, NEW_WITHOUT_LISTS), NEW_WITHOUT_LISTS)
    with pytest.raises(CompileError):
        require_derived_type(checked(f"[{text}]", NEW_WITHOUT_LISTS), NEW_WITHOUT_LISTS)


@pytest.mark.parametrize("text", ["1.5", "1u", "quantity('1')", "{'a': 1}", "[[1]]", "null"])
def test_a_derived_attribute_gives_nothing_else(text: str) -> None:
    with pytest.raises(CompileError, match="must evaluate to a primitive scalar"):
        require_derived_type(checked(text), device_environment())
