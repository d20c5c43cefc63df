"""The parts of timestamps and durations: `getHours()` and its kin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dray.cel.errors import EvaluationError
from dray.cel.instants import Calendar, calendar_of
from dray.cel.values import Duration, Timestamp, Value

_PARTS: Final[dict[str, Callable[[Calendar], int]]] = {
    "timestamp_to_year": lambda calendar: calendar.year,
    "timestamp_to_month": lambda calendar: calendar.month - 1,
    "timestamp_to_day_of_month": lambda calendar: calendar.day - 1,
    "timestamp_to_day_of_month_1_based": lambda calendar: calendar.day,
    "timestamp_to_day_of_year": lambda calendar: calendar.day_of_year,
    "timestamp_to_day_of_week": lambda calendar: calendar.day_of_week,
    "timestamp_to_hours": lambda calendar: calendar.hour,
    "timestamp_to_minutes": lambda calendar: calendar.minute,
    "timestamp_to_seconds": lambda calendar: calendar.second,
    "timestamp_to_milliseconds": lambda calendar: calendar.milliseconds,
}


def _reader(part: Callable[[Calendar], int]) -> Callable[..., int]:
    def read(instant: Timestamp, zone: str = "") -> int:
        try:
            return part(calendar_of(instant, zone))
        except ValueError as error:
            raise EvaluationError(str(error)) from None

    return read


def _whole(unit: int) -> Callable[[Duration], int]:
    """How often the unit fits; computed in doubles as Go does, which matters for durations of centuries."""

    def count(duration: Duration) -> int:
        sign = -1 if duration.nanos < 0 else 1
        whole, rest = divmod(abs(duration.nanos), unit)
        return int(float(sign * whole) + float(sign * rest) / float(unit))

    return count


def _milliseconds(duration: Duration) -> int:
    return abs(duration.nanos) // 10**6 * (-1 if duration.nanos < 0 else 1)


def _overload_ids(name: str) -> tuple[str, str]:
    # One name in cel-go is shorter than its pattern.
    with_zone = "timestamp_to_seconds_tz" if name == "timestamp_to_seconds" else f"{name}_with_tz"
    return name, with_zone


OVERLOADS: Final[dict[str, Callable[..., Value]]] = {
    **{identifier: _reader(part) for name, part in _PARTS.items() for identifier in _overload_ids(name)},
    "duration_to_hours": _whole(3600 * 10**9),
    "duration_to_minutes": _whole(60 * 10**9),
    "duration_to_seconds": _whole(10**9),
    "duration_to_milliseconds": _milliseconds,
}
