from __future__ import annotations

from dray.allocator.layers import Layered


def filled(**entries: int) -> Layered[str, int]:
    table: Layered[str, int] = Layered()
    for key, value in entries.items():
        table[key] = value
    return table


def test_a_fork_starts_out_equal() -> None:
    fork = filled(a=1, b=2).fork()
    assert dict(fork.items()) == {"a": 1, "b": 2}
    assert len(fork) == 2


def test_neither_side_of_a_fork_sees_what_the_other_changes() -> None:
    table = filled(a=1, b=2)
    fork = table.fork()
    fork["a"] = 10
    fork.discard("b")
    table["c"] = 3
    assert dict(table.items()) == {"a": 1, "b": 2, "c": 3}
    assert dict(fork.items()) == {"a": 10}


def test_a_key_that_was_removed_in_a_fork_can_come_back() -> None:
    fork = filled(a=1).fork()
    fork.discard("a")
    assert "a" not in fork
    fork["a"] = 2
    assert fork["a"] == 2


def test_many_forks_in_a_row_lose_nothing() -> None:
    table: Layered[int, int] = Layered()
    expected: dict[int, int] = {}
    for number in range(300):
        table[number] = expected[number] = number
        if number % 3 == 0:
            table.discard(number // 2)
            expected.pop(number // 2, None)
        table = table.fork()
    assert dict(table.items()) == expected


def test_clearing_one_side_leaves_the_other() -> None:
    table = filled(a=1)
    fork = table.fork()
    fork.clear()
    assert len(fork) == 0
    assert table["a"] == 1
