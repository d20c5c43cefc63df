from __future__ import annotations

from typing import Any

import pytest

from tests.unit.validation.builders import (
    created,
    expect_accepted,
    expect_errors,
    make,
    make_claim,
    make_request,
    updated,
)

LONG = "true" + " " * 10240
TEN = "[0,1,2,3,4,5,6,7,8,9]"


def nested(depth: int) -> str:
    """Costs ten times as much for each level; five are too much for one expression."""
    return TEN + "".join(f".all(x{level}, {TEN}" for level in range(depth)) + ".size() > 0" + ")" * depth


COSTLY = nested(5)


def selecting(expression: str) -> Any:
    return make_claim(make_request(selectors=[{"cel": {"expression": expression}}]))


def deriving(*expressions: str) -> Any:
    names = [f"derived/a{number}" for number in range(len(expressions))]
    attributes = [{"name": name, "expression": text} for name, text in zip(names, expressions, strict=True)]
    constraints = [{"matchAttribute": name} for name in names]
    return make_claim(make_request(derivedAttributes=attributes), constraints=constraints)


def constraining(expression: str) -> Any:
    return make_claim(constraints=[{"cel": {"expression": expression}}])


SELECTOR = "spec.devices.requests[0].exactly.selectors[0].cel.expression"
DERIVED = "spec.devices.requests[0].exactly.derivedAttributes[0].expression"
CONSTRAINT = "spec.devices.constraints[0].cel.expression"


def test_good_expressions_are_accepted() -> None:
    expect_accepted(created(selecting("device.driver == 'dra.example.com'")))
    expect_accepted(created(deriving("device.attributes['dra.example.com'].numa")))
    expect_accepted(created(constraining("devices.all(d, d.driver == devices[0].driver)")))


@pytest.mark.parametrize(
    ("claim", "error"),
    [
        (selecting("nope"), f'{SELECTOR}: Invalid value: "nope": compilation failed: ERROR: <input>:1:1: undeclared'),
        (selecting("1"), f'{SELECTOR}: Invalid value: "1": must evaluate to bool or the unknown type, not int'),
        (selecting(""), f'{SELECTOR}: Invalid value: "": compilation failed: ERROR: <input>:1:1: Syntax error'),
        (selecting(LONG), f"{SELECTOR}: Too long: may not be more than 10240 bytes"),
        (selecting(COSTLY), f"{SELECTOR}: Forbidden: too complex, exceeds cost limit"),
        (deriving("{}"), f'{DERIVED}: Invalid value: "{{}}": must evaluate to a primitive scalar'),
        (deriving(LONG), f"{DERIVED}: Too long: may not be more than 10240 bytes"),
        (constraining(""), f"{CONSTRAINT}: Required value"),
        (constraining("device.driver"), f'{CONSTRAINT}: Invalid value: "device.driver": compilation failed: ERROR'),
        (constraining("devices"), f'{CONSTRAINT}: Invalid value: "devices": must evaluate to bool'),
        (constraining(LONG), f"{CONSTRAINT}: Too long: may not be more than 10240 bytes"),
        (constraining(COSTLY), f"{CONSTRAINT}: Forbidden: too complex, exceeds cost limit"),
    ],
)
def test_bad_expressions_are_refused(claim: Any, error: str) -> None:
    expect_errors(created(claim), error)


def test_derived_attributes_share_a_limit() -> None:
    expect_accepted(created(deriving(*[nested(4)] * 6)))
    expect_errors(
        created(deriving(*[nested(4)] * 7)),
        "spec.devices: Forbidden: too complex, total cost of derived attribute CEL expressions",
    )


def test_the_place_of_an_error_is_marked_with_dots() -> None:
    detail = created(selecting("'x' == 'y' ||\n\t'é' == nope")).errors[0].detail
    assert detail.startswith("compilation failed: ERROR: <input>:2:9: undeclared reference to 'nope'")
    assert detail.endswith("\n |  'é' == nope\n | ..．.....^")


def test_expressions_that_a_class_has_are_not_compiled_again() -> None:
    def make_class(*expressions: str, **spec: Any) -> Any:
        return make("DeviceClass", {"selectors": [{"cel": {"expression": text}} for text in expressions], **spec})

    expect_accepted(updated(make_class("nope", extendedResourceName="a.b/c"), make_class("nope")))
    changed = updated(make_class("nope", "true"), make_class("nope"))
    expect_errors(changed, 'spec.selectors[0].cel.expression: Invalid value: "nope": compilation failed')
