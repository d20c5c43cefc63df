from __future__ import annotations

import pickle

from dray.cel.errors import CompileError


def test_a_caret_stands_under_the_column() -> None:
    error = CompileError("no such thing", text="a &&\n\tb.c", position=8)
    assert str(error) == "2:4: no such thing\n | \tb.c\n | \t  ^"


def test_of_a_long_line_only_the_surroundings_are_shown() -> None:
    text = "x" * 5000 + "!" + "y" * 5000
    shown = str(CompileError("here", text=text, position=5000)).splitlines()
    assert shown[1] == " | …" + "x" * 100 + "!" + "y" * 99 + "…"
    assert shown[2].index("^") == shown[1].index("!")


def test_without_a_position_there_is_just_the_message() -> None:
    assert str(CompileError("too long")) == "too long"


def test_errors_can_be_sent_between_processes() -> None:
    error = pickle.loads(pickle.dumps(CompileError("m", text="abc", position=1, kind="internal")))
    assert (error.message, error.text, error.position, error.kind) == ("m", "abc", 1, "internal")
