from __future__ import annotations

import pytest

from dray.cel.checker import check
from dray.cel.declarations import Function, read_overload
from dray.cel.environment import device_environment, generic_environment
from dray.cel.parser import parse
from dray.cel.types import BOOL, DYN, INT, NULL, STRING, Type, list_of, map_of
from tests.unit.cel.trees import error_of, overloads, show, type_of


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("device.driver", "string"),
        ("device.attributes", "map(string, map(string, dyn))"),
        ("device.attributes['d'].x", "dyn"),
        ("device.attributes.d.x.y.z", "dyn"),
        ("device.capacity['d'].mem", "kubernetes.Quantity"),
        ("device.attributes['d'].x + 1", "int"),
        ("device.attributes['d'].x + device.attributes['d'].y", "dyn"),
        ("device.attributes['d'].?x", "optional_type(dyn)"),
        ("device.attributes[?'d'].x", "optional_type(dyn)"),
        ("[]", "list(dyn)"),
        ("{}", "map(dyn, dyn)"),
        ("[[], [1]]", "list(list(int))"),
        ("[[], [[]], [[[]]]]", "list(list(list(list(dyn))))"),
        ("[null, duration('1s')]", "list(google.protobuf.Duration)"),
        ("[1].map(x, string(x))", "list(string)"),
        ("{'a': 1}.map(k, k)", "list(string)"),
        ("{'a': 1}.transformMap(k, v, v > 0)", "map(string, bool)"),
        ("[1].transformMap(i, v, string(v))", "map(int, string)"),
        ("[].filter(x, x == 'a')", "list(string)"),
        ("cel.bind(x, [], x + [1])", "list(int)"),
        ("[1].first()", "optional_type(int)"),
        ("optional.none()", "optional_type(dyn)"),
        ("optional.none().orValue(1)", "int"),
        ("true ? 1 : dyn('a')", "dyn"),
        ("true ? optional.of(dyn(1)) : optional.of(1)", "optional_type(dyn)"),
        ("type(1)", "type(int)"),
        ("int", "type(int)"),
        ("list", "type(list(dyn))"),
        ("type", "type(type)"),
        ("google.protobuf.Duration", "type(google.protobuf.Duration)"),
        ("google.protobuf.Int64Value{value: 1}", "wrapper(int)"),
        ("google.protobuf.Int64Value{value: 1} + 1", "int"),
        ("google.protobuf.Duration{seconds: 5}", "google.protobuf.Duration"),
        ("null == null", "bool"),
        ("[3, 1].sortBy(x, -x)", "list(int)"),
        ("[].min()", "int"),
        ("[dyn(1)].max()", "dyn"),
        ("[1, 2.0]", "list(dyn)"),
        ("1 < 2.0", "bool"),
    ],
)
def test_types(text: str, type_: str) -> None:
    assert type_of(text) == type_


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("1 + 1", ("add_int64",)),
        ("device.attributes['d'].x == 1", ("equals",)),
        ("device.attributes['d'].x < 1", ("less_int64", "less_uint64_int64", "less_double_int64")),
        ("device.attributes['d'].x.isGreaterThan(quantity('1'))", ("quantity_is_greater_than",)),
        (
            "device.attributes['d'].x[0]",
            ("index_list", "index_map", "optional_list_index_int", "optional_map_index_value"),
        ),
        ("'a' in device.attributes['d'].x", ("in_list", "in_map")),
        ("[].max()", ("list_int_max_int",)),
        ("optional.of(1)", ("optional_of",)),
    ],
)
def test_overloads_that_are_left(text: str, ids: tuple[str, ...]) -> None:
    assert overloads(text) == ids


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("a.b", "undeclared reference to 'a'", 1),
        ("devise.driver", "did you mean 'device'", 1),
        ("device.drivr", "undefined field 'drivr' of kubernetes.DRADevice; did you mean 'driver'", 7),
        ("size('a', 'b')", r"found no matching overload for 'size' applied to '\(string, string\)'", 5),
        ("1 + 'a'", r"found no matching overload for '_\+_' applied to '\(int, string\)'", 3),
        ("1.5.size()", r"applied to 'double.\(\)'", 9),
        ("[].min() + timestamp(0)", r"applied to '\(int, google.protobuf.Timestamp\)'", 10),
        ("1 && true", "expected type 'bool' but found 'int'", 1),
        ("1 == 'a'", "found no matching overload", 3),
        ("1.all(x, true)", "expression of type 'int' cannot be range of a comprehension", 1),
        ("[1].exists(x, x)", "expected type 'bool' but found 'int'", 15),
        ("[?1]", r"expected type 'optional_type\(int\)' but found 'int'", 3),
        ("{?'a': 1}", r"expected type 'optional_type\(int\)' but found 'int'", 8),
        ("'a'.b", "type 'string' does not support field selection", 4),
        ("has(device.nope)", "undefined field 'nope'", 4),
        ("nope()", "undeclared reference to 'nope'", 5),
        ("device{}", "is not a message type", 7),
        ("int{}", "is not a message type", 4),
        ("google.protobuf.Duration{hours: 1}", "undefined field 'hours'", 31),
        ("google.protobuf.Duration{seconds: 'a'}", "expected type of field 'seconds' is 'int'", 33),
        ("[1].map(x, x)[x]", "undeclared reference to 'x'", 15),
        ("''.reverse()", r"found no matching overload for 'reverse' applied to 'string.\(\)'", 11),
        ("[0][0u]", "found no matching overload for '_", 4),
    ],
)
def test_errors_name_the_problem_and_its_place(text: str, message: str, column: int) -> None:
    error = error_of(text)
    with pytest.raises(type(error), match=message):
        raise error
    assert error.column == column


def test_names_are_resolved_in_the_checked_tree() -> None:
    checked = check(parse("optional.of(net.IP).hasValue()"), device_environment())
    assert show(checked.expr) == "optional.of(net.IP)->hasValue()"
    assert checked.expr is not checked.parsed.expr


def test_a_tree_without_names_to_resolve_is_kept() -> None:
    checked = check(parse("device.attributes['d'].x == 1"), device_environment())
    assert checked.expr is checked.parsed.expr


def test_include_is_another_name_for_includes() -> None:
    checked = check(parse("device.attributes['d'].x.include(1)"), device_environment())
    assert show(checked.expr) == "_[_](device.attributes, 'd').x->includes(1)"


class TestContainers:
    def test_names_are_looked_up_from_the_inside_out(self) -> None:
        environment = generic_environment({"a.b.x": INT, "a.y": STRING, "y": BOOL, "z": DYN}, container="a.b")
        assert [type_of(name, environment) for name in ("x", "y", ".y", "z")] == ["int", "string", "bool", "dyn"]

    def test_a_qualified_variable_wins_over_a_field(self) -> None:
        environment = generic_environment({"a.b": INT, "a": map_of(STRING, STRING)})
        assert type_of("a.b", environment) == "int"
        assert type_of("a.c", environment) == "string"

    def test_a_local_variable_hides_all_names_that_start_with_it(self) -> None:
        environment = generic_environment({"y.z": STRING, "y": STRING})
        checked = check(parse("[{'z': 1}].exists(y, y.z == 1 && .y.z == 'a' && .y == 'b')"), environment)
        shown = show(checked.expr)
        assert "_==_(y.z, 1)" in shown
        assert "_==_(.y, 'b')" in shown

    def test_functions_of_ones_own_join_those_of_the_libraries(self) -> None:
        overload = read_overload("sort_tuple", "(tuple(T, T)) -> tuple(T, T)")
        make = read_overload("tuple_2", "(T, U) -> tuple(T, U)")
        environment = generic_environment({}, [Function("sort", (overload,)), Function("tuple", (make,))])
        assert type_of("sort(tuple(dyn(1), 2u))", environment) == "tuple(dyn, dyn)"
        assert type_of("[1].sort()", environment) == "list(int)"


class TestNull:
    @pytest.mark.parametrize("type_", ["duration('1s')", "quantity('1')", "ip('::1')", "optional.of(1)", "null"])
    def test_compares_with_what_may_be_absent(self, type_: str) -> None:
        assert type_of(f"{type_} == null") == "bool"

    @pytest.mark.parametrize("type_", ["1", "'a'", "true", "[1]", "{1: 1}"])
    def test_does_not_compare_with_plain_values(self, type_: str) -> None:
        assert "no matching overload" in str(error_of(f"{type_} == null"))


class TestAny:
    """Without list attributes, the type of attribute values is Any: like dyn in calls, but no range."""

    environment = device_environment(stored=False, list_type_attributes=False)

    def test_in_calls(self) -> None:
        assert type_of("device.attributes['d'].x == 'a'", self.environment) == "bool"
        assert type_of("device.attributes['d'].x", self.environment) == "google.protobuf.Any"

    def test_not_as_a_range(self) -> None:
        assert "cannot be range" in str(error_of("device.attributes['d'].x.all(i, true)", self.environment))


@pytest.mark.parametrize(
    "text",
    [
        "[" * 250 + "]" * 250,
        "1" + " + 1" * 250,
        "[1].map(x, " * 83 + "x" + ")" * 83,
        "optional.of(" * 240 + "1" + ")" * 240,
        "!(" * 240 + "true" + ")" * 240,
    ],
    ids=lambda text: text[:8],
)
def test_deep_trees_and_types_are_no_problem(text: str) -> None:
    assert check(parse(text), device_environment())


def test_variables_of_any_type() -> None:
    environment = generic_environment({"n": NULL, "l": list_of(INT), "t": Type("wrapper", "wrapper", (INT,))})
    assert type_of("l[0] + t", environment) == "int"
    assert type_of("t == null || n == null", environment) == "bool"


def test_types_that_only_nested_variables_make_so_deep_are_refused() -> None:
    opening, closing = "[" * 200, "]" * 200
    text = f"cel.bind(a, {opening}1{closing}, {opening}a{closing})"
    assert "nests deeper than" in str(error_of(text))
