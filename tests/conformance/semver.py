"""Semantic versions: validation of version attributes, CEL's `semver()`, comparison."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from dray.api.versions import InvalidVersion, Semver, version_problems
from tests.conformance.differences import describe
from tests.conformance.runner import Case, has_vectors, iter_data

is_mine = has_vectors(parse="draValid", pairs="compareTo")


def iter_cases(paths: list[Path]) -> Iterator[Case]:
    for _, data in iter_data(paths, is_mine):
        for vector in data.get("parse", []):
            yield Case(f"parse {vector['input']!r}", partial(check_parse, vector))
        for vector in data.get("pairs", []):
            yield Case(f"pairs {vector['a']!r} {vector['b']!r}", partial(check_pair, vector))


def check_parse(vector: dict[str, Any]) -> str | None:
    return describe(vector, parse_answers(vector["input"]))


def check_pair(vector: dict[str, Any]) -> str | None:
    left, right = Semver.parse(vector["a"]), Semver.parse(vector["b"])
    ours = {
        "a": vector["a"],
        "b": vector["b"],
        "compareTo": left.compare(right),
        "equals": left == right,
        "isGreaterThan": left > right,
        "isLessThan": left < right,
    }
    return describe(vector, ours)


def parse_answers(text: str) -> dict[str, Any]:
    problems = version_problems(text)
    answers: dict[str, Any] = {
        "input": text,
        "draValid": not problems,
        "draErrors": [{"type": problem.type, "detail": problem.detail} for problem in problems],
    }
    for suffix, prefix in (("", ""), ("Normalize", "norm")):
        try:
            version = Semver.parse(text, normalize=bool(suffix))
        except InvalidVersion as error:
            answers[f"celSemver{suffix}"] = {"error": str(error)}
            answers[f"celIsSemver{suffix}"] = False
        else:
            answers[f"celSemver{suffix}"] = {"string": str(version)}
            answers[f"celIsSemver{suffix}"] = True
            for part in ("major", "minor", "patch"):
                name = prefix + part.capitalize() if prefix else part
                answers[name] = str(as_int64(getattr(version, part)))
    answers["attributeParse"] = {"ok": answers["celIsSemver"], **answers["celSemver"]}
    return answers


def as_int64(number: int) -> int:
    """CEL's major(), minor() and patch() are signed."""
    return number - (1 << 64) if number >= 1 << 63 else number
