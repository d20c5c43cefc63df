"""Quantities: parsing, formatting, conversion, arithmetic and comparison."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from dray.api.quantities import InvalidQuantity, Quantity
from tests.conformance.differences import describe
from tests.conformance.runner import Case, has_vectors, iter_data

ONE = Quantity.parse("1")


is_mine = has_vectors(parse="valid", pairs="semanticDeepEqual", jsonDecode="json")


def iter_cases(paths: list[Path]) -> Iterator[Case]:
    checks: dict[str, tuple[str, Callable[[Any], Any]]] = {
        "parse": ("input", parse_answers),
        "jsonDecode": ("json", json_answers),
    }
    for _, data in iter_data(paths, is_mine):
        for section, (key, answers) in checks.items():
            for vector in data.get(section, []):
                yield Case(f"{section} {vector[key]!r}", partial(compare, vector, answers, key))
        for vector in data.get("pairs", []):
            name = f"pairs {vector['a']!r} {vector['b']!r}"
            yield Case(name, partial(compare_pair, vector))


def compare(vector: Any, answers: Callable[[Any], Any], key: str) -> str | None:
    return describe(vector, {key: vector[key], **answers(vector[key])})


def compare_pair(vector: Any) -> str | None:
    return describe(vector, pair_answers(vector["a"], vector["b"]))


def go_float(number: float) -> float | str:
    """JSON has no infinities; they were recorded as Go prints them."""
    if math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else "+Inf" if number > 0 else "-Inf"


def parse_answers(text: str) -> dict[str, Any]:
    try:
        quantity = Quantity.parse(text)
    except InvalidQuantity as error:
        return {"valid": False, "error": str(error)}
    as_int64 = quantity.as_int64()
    rounded, exact = quantity.round_up(0)
    tripled, tripled_exactly = quantity.multiply(3)
    answers = {
        "valid": True,
        "string": str(quantity),
        "canonical": quantity.canonical,
        "json": json.dumps(str(quantity)),
        "jsonRoundTrip": str(Quantity.parse_json(json.dumps(str(quantity)))),
        "format": quantity.format,
        "value": str(quantity.value),
        "milliValue": str(quantity.milli_value),
        "asInt64Ok": as_int64 is not None,
        "approxFloat64": go_float(quantity.approximate_float()),
        "float64Slow": go_float(float(quantity)),
        "decimal": f"{quantity.as_decimal():f}",
        "sign": quantity.sign,
        "isZero": quantity.is_zero,
        "neg": str(-quantity),
        "roundUp0": str(rounded),
        "roundUp0Exact": exact,
        "mul3": str(tripled),
        "mul3Ok": tripled_exactly,
        "cmp1": quantity.compare(ONE),
    }
    if as_int64 is not None:
        answers["asInt64"] = str(as_int64)
    return answers


def json_answers(literal: str) -> dict[str, Any]:
    try:
        quantity = Quantity.parse_json(literal)
    except InvalidQuantity as error:
        return {"valid": False, "error": str(error)}
    encoded = json.dumps({"v": str(quantity)}, separators=(",", ":"))
    return {"valid": True, "string": str(quantity), "encoded": encoded}


def pair_answers(a: str, b: str) -> dict[str, Any]:
    left, right = Quantity.parse(a), Quantity.parse(b)
    total, difference = left + right, left - right
    return {
        "a": a,
        "b": b,
        "cmp": left.compare(right),
        "equal": left == right,
        "semanticDeepEqual": left == right,
        "sum": str(total),
        "sumFormat": total.format,
        "sumValue": str(total.value),
        "diff": str(difference),
        "diffFormat": difference.format,
        "diffValue": str(difference.value),
    }
