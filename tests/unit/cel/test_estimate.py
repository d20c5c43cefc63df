from __future__ import annotations

import pytest

from dray.cel.checker import check
from dray.cel.environment import Environment, device_environment, devices_environment
from dray.cel.estimate import CostEstimate, estimate
from dray.cel.parser import parse
from dray.cel.ranges import MOST

LIMIT = 1_000_000
FAR_BEYOND = 1844674407370955264
"""A tenth of the largest number: what comparing two values of unknown size costs."""

RING = """
    size(devices) == 4 &&
    devices.map(d, d.attributes['mla.example.com'].deviceid).max() -
    devices.map(d, d.attributes['mla.example.com'].deviceid).min() == 3
"""
GRID = """
    size(devices) == 4 &&
    devices.all(d,
        devices.filter(other,
            d != other &&
            ((d.attributes["mla.example.com"].row == other.attributes["mla.example.com"].row &&
              (d.attributes["mla.example.com"].col == other.attributes["mla.example.com"].col + 1 ||
               d.attributes["mla.example.com"].col == other.attributes["mla.example.com"].col - 1)) ||
             (d.attributes["mla.example.com"].col == other.attributes["mla.example.com"].col &&
              (d.attributes["mla.example.com"].row == other.attributes["mla.example.com"].row + 1 ||
               d.attributes["mla.example.com"].row == other.attributes["mla.example.com"].row - 1))
            )
        ).size() >= 2
    )
"""


def cost(text: str, environment: Environment | None = None) -> CostEstimate:
    environment = environment or device_environment()
    return estimate(check(parse(text), environment), environment)


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        # E1 leaves
        ("true", 0, 0),
        ("device", 1, 1),
        ("net.IP", 1, 1),
        # E2 selections
        ("device.driver", 2, 2),
        ("has(device.driver)", 1, 1),
        ("device.attributes['d'].x", 4, 4),
        ("device.attributes['d'].x.y", 4, 4),
        # E3 constructors
        ("[1, device.driver]", 12, 12),
        ("{'a': [1]}", 40, 40),
        ("google.protobuf.Duration{seconds: 5}", 40, 40),
        # E4 calls, by overload and by function
        ("'abc'.contains('b')", 1, 1),
        ("size('abc')", 1, 1),
        ("dyn(1)", 1, 1),
        ("device.attributes['d'].x + 'a'", 5, 11),
        ("quantity('1Gi')", 1, 1),
        ("'a' in ['a', 'b', 'c']", 13, 13),
        # E6 sizes of the input
        ("device.driver.startsWith(device.driver)", 4, 11),
        ("device.attributes['d'].x.startsWith('a')", 5, 5),
        ("'a' < device.driver", 3, 3),
        # E7 equality
        ("device.driver == 'a'", 3, 3),
        ("device.driver == device.driver", 5, 11),
        ("type(1) == int", 3, FAR_BEYOND + 2),
        # E8 Kubernetes' types
        ("ip('::1') == ip('::1')", 3, 3),
        ("quantity('1') != quantity('1')", 3, FAR_BEYOND + 2),
        ("format.date() == format.uri()", 3, 9),
        ("url('http://a.b/12345') == url('a')", 4, 4),
        # E10 logic and conditions
        ("device.driver == 'a' && device.driver == 'b'", 3, 6),
        ("true ? [1] : 'a'.size() > 0 ? [2] : [3]", 10, 12),
        # E12 comprehensions
        ("[1, 2].all(x, x > 0)", 10 + 1 + 2 * (2 + 1), 10 + 1 + 2 * (2 + 3)),
        ("device.attributes.all(k, true)", 3, 2 + 1 + 32 * 3),
        ("[1, 2].map(x, x)", 10 + 10 + 1 + 2 * 13, 10 + 10 + 1 + 2 * 13),
        # E13 bind
        ("cel.bind(x, device.driver, x + x)", 10 + 2 + 2, 10 + 2 + 2 + 13),
    ],
)
def test_rules(text: str, least: int, most: int) -> None:
    assert cost(text) == (least, most)


def test_a_key_variable_is_taken_for_as_long_as_the_value() -> None:
    """The paths of both variables share memory, and the second overwrites the first (E6)."""
    two_variables = cost("device.attributes['d'].all(k, v, k.matches('a'))").max
    one_variable = cost("device.attributes['d'].all(k, k.matches('a'))").max
    assert two_variables - one_variable == 32 * (7 - 4)


def test_strings_in_lists_have_no_bound() -> None:
    assert cost("['a', 'b'].join()").max > LIMIT
    assert cost("['a'].max() == 'a'").max > LIMIT


def test_lists_of_unknown_length_saturate() -> None:
    assert cost("lists.range(device.attributes['d'].x)").max == MOST
    assert cost("lists.range(1 + 1)").max == MOST


def test_lengths_wrap_where_upstream_does_not_check() -> None:
    assert cost("[1, 2].slice(2, 1)").max == MOST
    assert cost("'a,b'.split(',', -1).map(x, x)").max == MOST


class TestDevices:
    environment = devices_environment()

    @pytest.mark.parametrize("story", [RING, GRID], ids=["ring", "grid"])
    def test_the_stories_of_the_proposal_stay_far_below_the_limit(self, story: str) -> None:
        assert cost(story, self.environment).max < LIMIT / 10

    def test_there_are_at_most_32_devices(self) -> None:
        assert cost("devices.all(d, true)", self.environment).max == 1 + 1 + 32 * 3

    def test_a_device_has_the_sizes_of_one_device(self) -> None:
        one = cost("device.attributes['d'].x == 'a'").max
        assert cost("devices[0].attributes['d'].x == 'a'", self.environment).max == one + 1
        each = cost("devices.all(d, d.attributes['d'].x == 'a')", self.environment).max
        assert each == 1 + 1 + 32 * (2 + 1 + one)

    def test_comparing_devices_costs_their_fields(self) -> None:
        assert cost("devices[0] == devices[1]", self.environment).max == 2 + 2 + 1

    def test_items_of_a_mapped_list_are_as_large_as_the_attribute(self) -> None:
        mapped = cost("devices.map(d, d.driver)", self.environment).max
        assert cost("devices.map(d, d.driver).max()", self.environment).max == mapped + 32 * (1 + 7)
        assert cost("devices.map(d, d.driver).join(',')", self.environment).max < LIMIT
        assert cost("devices.map(d, d.attributes['d'].x).sum() > 3", self.environment).max < LIMIT

    def test_lists_in_other_environments_stay_without_bound(self) -> None:
        assert cost("device.attributes.map(k, k).max()").max > LIMIT


def test_deep_trees_are_no_problem() -> None:
    assert cost("1" + " + 1" * 250).max == 250
    assert cost("[1, 2].all(x, " * 200 + "true" + ")" * 200).max == MOST
