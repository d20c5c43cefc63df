"""Server-side printing: columns and cells. What columns are described as is prose and not compared."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from dray.api.printing import cells_of, columns_of
from dray.api.times import format_time
from tests.conformance.differences import describe
from tests.conformance.runner import Case, has_keys, iter_data

NOW = datetime(2026, 8, 1, 12, tzinfo=UTC)
RELATIVE = re.compile(r"@(?P<sign>[+-])(?P<parts>(?:[0-9.]+[hms])+)")
UNITS = {"h": "hours", "m": "minutes", "s": "seconds"}


is_mine = has_keys("rows columns")


def iter_cases(paths: list[Path]) -> Iterator[Case]:
    for _, data in iter_data(paths, is_mine):
        for row in data["rows"]:
            obj = row["object"]
            name = f"{obj['kind']} {obj['metadata']['name']}"
            yield Case(name, partial(check, row, data["columns"][obj["kind"]]))


def check(row: dict[str, Any], columns: list[dict[str, Any]]) -> str | None:
    obj = with_times(row["object"])
    of = obj["apiVersion"], obj["kind"]
    ours = {
        "cells": list(cells_of(*of, obj, NOW)),
        "columns": [without_description(column._asdict()) for column in columns_of(*of)],
    }
    expected = {"cells": row["cells"], "columns": [without_description(column) for column in columns]}
    return describe(expected, ours)


def without_description(column: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in column.items() if key != "description"}


def with_times(value: Any) -> Any:
    """Times relative to that of printing become instants."""
    if isinstance(value, dict):
        return {key: with_times(item) for key, item in value.items()}
    if isinstance(value, list):
        return [with_times(item) for item in value]
    if isinstance(value, str) and (relative := RELATIVE.fullmatch(value)):
        parts = re.findall(r"([0-9.]+)([hms])", relative["parts"])
        distance = timedelta(**{UNITS[unit]: float(number) for number, unit in parts})
        return format_time(NOW + distance if relative["sign"] == "+" else NOW - distance)
    return value
