from __future__ import annotations

import gc
import itertools

import pytest

from dray.validation.fields import (
    SPEC,
    FieldError,
    Path,
    duplicate,
    forbidden,
    internal,
    invalid,
    not_found,
    not_supported,
    required,
    too_long,
    too_many,
)


def test_a_path_reads_as_in_kubernetes() -> None:
    path = SPEC.child("devices", "requests").index(3).child("capacity").key("a.b/c")
    assert str(path) == "spec.devices.requests[3].capacity[a.b/c]"


def test_a_path_is_not_changed_by_its_children() -> None:
    SPEC.child("devices")
    assert str(SPEC) == "spec"


def test_large_objects_do_not_leave_their_paths_behind() -> None:
    for one, two, three in itertools.product(range(50), repeat=3):
        path = SPEC.child("a").index(one).child("b").index(two).child("c").index(three)
        assert str(path) == f"spec.a[{one}].b[{two}].c[{three}]"
    del path
    assert sum(isinstance(each, Path) for each in gc.get_objects()) < 25_000


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (required(SPEC), "spec: Required value"),
        (required(SPEC, "give one"), "spec: Required value: give one"),
        (invalid(SPEC, "a\nb", "no lines"), r'spec: Invalid value: "a\nb": no lines'),
        (invalid(SPEC, None, "no"), "spec: Invalid value: null: no"),
        (invalid(SPEC, True, "no"), "spec: Invalid value: true: no"),
        (invalid(SPEC, ["a", "<b>"], "no"), r'spec: Invalid value: ["a","\u003cb\u003e"]: no'),
        (not_supported(SPEC, "x", ("A", "B")), 'spec: Unsupported value: "x": supported values: "A", "B"'),
        (forbidden(SPEC, "not here"), "spec: Forbidden: not here"),
        (too_long(SPEC, 63), "spec: Too long: may not be more than 63 bytes"),
        (too_many(SPEC, 33, 32), "spec: Too many: 33: must have at most 32 items"),
        (duplicate(SPEC, "x"), 'spec: Duplicate value: "x"'),
        (not_found(SPEC, "x"), 'spec: Not found: "x"'),
        (internal(SPEC, "broken"), "spec: Internal error: broken"),
    ],
)
def test_an_error_says_what_kubernetes_says(error: FieldError, text: str) -> None:
    assert str(error) == text


def test_a_cause_has_reason_message_and_field() -> None:
    cause = invalid(Path("metadata").child("name"), "A", "no").cause()
    assert cause == {"reason": "FieldValueInvalid", "message": 'Invalid value: "A": no', "field": "metadata.name"}
