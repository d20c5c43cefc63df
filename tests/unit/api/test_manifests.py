"""YAML and JSON texts as documents with line numbers."""

from __future__ import annotations

from typing import Any

import pytest

from dray.api.manifests import MAX_YAML_DOCUMENT, Document, ManifestError, iter_documents
from dray.api.yaml_nodes import MAX_DEPTH, MAX_VALUES


def values(text: str) -> list[Any]:
    return [part.value for part in iter_documents(text) if not isinstance(part, ManifestError)]


def only(text: str) -> Document:
    (part,) = iter_documents(text)
    assert not isinstance(part, ManifestError), part
    return part


def errors(text: str) -> list[tuple[int, str]]:
    return [(part.line, part.message) for part in iter_documents(text) if isinstance(part, ManifestError)]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("# only a comment\n---\n---\n", 0),
        ("a: 1\n", 1),
        ("---\na: 1\n---\n\n---\nb: 2\n...\n", 2),
        ('{"a": 1}\n{"b": 2}', 2),
        ('{"a": 1}\n---\n{"b": 2}\n---\n', 2),
        ("{a: 1}", 1),
    ],
)
def test_a_text_has_documents(text: str, count: int) -> None:
    assert len(values(text)) == count
    assert errors(text) == []


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        ("1e400", "1e400"),
        ("yes", True),
        ("On", True),
        ("y", True),
        ("n", False),
        ("off", False),
        ("Yes!", "Yes!"),
        ("'yes'", "yes"),
        ("!!str yes", "yes"),
        ("~", None),
        ("2001-01-01", "2001-01-01"),
        ("2001-01-01T00:00:00Z", "2001-01-01T00:00:00Z"),
        ("10:30", "10:30"),
        ("010", 8),
        ("0x1F", 31),
        ("0b11", 3),
        ("0o17", 15),
        ("-7", -7),
        ("1_000", 1000),
        ("_1", "_1"),
        ("09", 9),
        ("1e3", 1000),
        ("2.0", 2),
        (".5", 0.5),
        ("18446744073709551615", 18446744073709551615),
        ("16Gi", "16Gi"),
        ("!!int '3'", 3),
        ("1.2.3", "1.2.3"),
        ("|-\n  a\n  b", "a\nb"),
    ],
)
def test_scalars_mean_what_they_mean_to_kubectl(scalar: str, value: Any) -> None:
    found = only(f"a: {scalar}\n").value["a"]
    assert found == value
    assert type(found) is type(value)


def test_keys_become_text() -> None:
    assert only("1: a\nyes: b\n1.5: c\n").value == {"1": "a", "true": "b", "1.5": "c"}


def test_aliases_and_merge_keys_are_resolved() -> None:
    text = "base: &base {a: 1, b: 2}\nmore: &more {b: 3, c: 4}\nall:\n  <<: [*base, *more]\n  a: 0\n"
    assert only(text).value["all"] == {"a": 0, "b": 2, "c": 4}


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a: 1\nb: {c: 1, c: 2}\n", 2, 'the key "c" is there twice'),
        ("x: 1\nspec:\n  a: 1\n  b: 2\n  a: 3\n", 5, 'the key "a" is there twice'),
        ("a: [1,\n", 2, "not valid YAML"),
        ("a: b: c\n", 1, "mapping values are not allowed"),
        ("a:\n\t- b\n", 2, "not valid YAML"),
        ("a: \x00\n", 1, "control characters"),
        ("a: .inf\n", 1, "can't be written in JSON"),
        ("a: !custom x\n", 1, "the tag !custom isn't supported"),
        ("a: !!set {x}\n", 1, "isn't supported"),
        ("? [a, b]\n: c\n", 1, "a key must be text"),
        ("a: *nothing\n", 1, "the alias *nothing has no anchor before it"),
        ("a: &a [*a]\n", 1, "the alias *a has no anchor before it"),
        ("<<: 3\n", 1, "`<<` takes a mapping"),
        ('{"a": [1, 2', 1, "not valid JSON: unexpected end of JSON input"),
        ('{"a":\n 1}}', 2, "not valid JSON"),
        ('{"a": 1}\n{"b": ', 2, "not valid JSON: unexpected end"),
    ],
)
def test_what_can_not_be_read_is_explained_with_its_line(text: str, line: int, message: str) -> None:
    ((found_line, found_message),) = errors(text)
    assert message in found_message
    assert found_line == line


def test_an_error_does_not_hide_the_other_documents() -> None:
    text = "a: 1\n---\nb: [\n---\nc: 3\n"
    assert values(text) == [{"a": 1}, {"c": 3}]
    assert [line for line, _ in errors(text)] == [4]


def test_aliases_that_multiply_are_refused_at_once() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 12)]
    ((_, message),) = errors("\n".join(lines))
    assert message == f"not valid YAML: aliases multiply to more than {MAX_VALUES} values"


@pytest.mark.parametrize("opening", ["[", "- ", "? ", "{a: ", "a:\n"])
def test_deep_nesting_is_refused(opening: str) -> None:
    text = opening * 100_000 if opening != "a:\n" else "".join(f"{' ' * level}a:\n" for level in range(2 * MAX_DEPTH))
    assert errors(text)
    assert values(text) == []


def test_a_large_yaml_document_is_refused_and_a_large_json_document_is_not() -> None:
    ((_, message),) = errors(f"a: {'x' * MAX_YAML_DOCUMENT}")
    assert message == "a YAML document of 3.0 MiB; at most 3 MiB are read"
    assert errors('{"a": "' + "x" * MAX_YAML_DOCUMENT + '"}') == []


def test_the_text_of_a_json_document_is_kept() -> None:
    text = '{"a": 1,\n "a": 2}'
    assert only(text).text == text.encode()


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ((), 3),
        (("spec",), 4),
        (("spec", "devices", 1), 7),
        (("spec", "devices", 1, "name"), 8),
        (("spec", "devices", 9), 5),
        (("spec", "exactly", "devices", 0, "name"), 6),
        (("status", "x"), 3),
    ],
)
def test_fields_have_lines_in_yaml(path: Any, line: int) -> None:
    text = "# a\n---\nkind: x\nspec:\n  devices:\n  - name: a\n  - x: 1\n    name: b\n"
    assert only(text).line_of(path) == line


def test_fields_have_lines_in_json() -> None:
    text = '\n{"kind": "x",\n "spec": {\n  "devices": [\n   {"name": "a"},\n   {"x": 1, \n"name": "b"}]}}'
    assert only(text).line_of(()) == 2
    assert only(text).line_of(("spec", "devices", 1, "name")) == 7
