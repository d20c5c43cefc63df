from __future__ import annotations

import pytest

from dray.cel.ast import Uint
from dray.cel.errors import EvaluationError
from dray.cel.values import DefaultMap, Value, decode_key, encode_key, find_key, type_name
from tests.unit.cel.builders import value_of


def test_keys_that_python_takes_for_the_same_stay_apart() -> None:
    values: list[Value] = [1, Uint(1), 1.0, True]
    keys = [encode_key(value) for value in values]
    assert len(set(keys)) == 4
    assert [type(decode_key(key)) for key in keys] == [int, Uint, float, bool]


@pytest.mark.parametrize(("stored", "asked"), [(1, Uint(1)), (Uint(1), 1), (1, 1.0), (Uint(1), 1.0)])
def test_a_number_finds_an_equal_key_of_another_type(stored: Value, asked: Value) -> None:
    assert find_key({encode_key(stored): "x"}, asked) == encode_key(stored)


@pytest.mark.parametrize(("stored", "asked"), [(1.0, 1), (True, 1), (1, True), (1, 1.5), ("1", 1), (1, "1")])
def test_other_keys_are_not_found(stored: Value, asked: Value) -> None:
    assert find_key({encode_key(stored): "x"}, asked) is None


def test_a_list_is_no_key() -> None:
    with pytest.raises(EvaluationError, match="unsupported key type"):
        encode_key([1])


def test_a_default_map_gives_an_empty_map_for_what_it_lacks() -> None:
    entries = DefaultMap({"a": {"x": 1}})
    assert entries["b"] == {}
    assert "b" not in entries
    assert len(entries) == 1


def test_types_have_the_names_of_cel() -> None:
    values: list[Value] = [True, 1, Uint(1), 1.0, "", b"", None, [], {}]
    names = ["bool", "int", "uint", "double", "string", "bytes", "null_type", "list", "map"]
    assert [type_name(value) for value in values] == names


def test_map_literals_keep_the_types_of_their_keys() -> None:
    assert value_of("{1: 'a', 2: 'b'}[dyn(2u)]") == "b"
    assert value_of("{true: 'a'}[true]") == "a"
    assert value_of("dyn(1.0) in {1: 'a'} && !(dyn(true) in {1: 'a'})") is True
