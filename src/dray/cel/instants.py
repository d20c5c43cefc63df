"""Instants and durations: how Go reads and writes them, and the parts of an instant in a time zone."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dray.cel.numbers import format_seconds, parse_int
from dray.cel.values import INT_MAX, Duration, Timestamp

_SECOND: Final = 10**9
_DAY: Final = 86_400
_INSTANT: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?"
    r"(?:Z|([+-])([0-9]{2}):([0-9]{2}))",
    re.ASCII,
)
_DURATION_PART: Final = re.compile(r"([0-9]*)(\.[0-9]*)?([^0-9.]+)", re.ASCII)
_UNITS: Final = {
    "ns": 1,
    "us": 1000,
    "µs": 1000,
    "μs": 1000,
    "ms": 10**6,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3600 * _SECOND,
}
_MONTH_DAYS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_ZONE_PATH: Final = re.compile(r"(?!/)(?!.*\.\.)(?!.*\\).+")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Calendar(NamedTuple):
    """An instant as a calendar and a clock on the wall show it; counted from 0 only where CEL does so."""

    year: int
    month: int
    day: int
    day_of_year: int
    day_of_week: int
    hour: int
    minute: int
    second: int
    milliseconds: int


def parse_timestamp(text: str) -> Timestamp | None:
    """RFC 3339 as Go reads it; None if it isn't. May be out of CEL's range."""
    parts = _INSTANT.fullmatch(text)
    if parts is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in parts.group(1, 2, 3, 4, 5, 6))
    if not (1 <= month <= 12 and 1 <= day <= _days_in(year, month) and hour < 24 and minute < 60 and second < 60):
        return None
    offset = 0
    if parts[8]:
        if int(parts[9]) > 24 or int(parts[10]) >= 60:
            return None
        offset = int(parts[9]) * 3600 + int(parts[10]) * 60
        offset = -offset if parts[8] == "-" else offset
    fraction = int((parts[7] or "")[:9].ljust(9, "0"))
    seconds = _days_since_epoch(year, month, day) * _DAY + hour * 3600 + minute * 60 + second - offset
    return Timestamp(seconds * _SECOND + fraction, offset)


def format_timestamp(instant: Timestamp) -> str:
    """RFC 3339 with the offset that the instant was written with, and as many digits as it has."""
    seconds, nanos = divmod(instant.nanos, _SECOND)
    days, rest = divmod(seconds + instant.offset, _DAY)
    year, month, day = _date_of(days)
    fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
    text = f"{year:04d}-{month:02d}-{day:02d}T{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}{fraction}"
    minutes = abs(instant.offset) // 60
    if not instant.offset:
        return text + "Z"
    return f"{text}{'-' if instant.offset < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"


def parse_duration(text: str) -> int | None:
    """Nanoseconds; None if the text is no duration or doesn't fit in 64 bits."""
    negative = text[:1] == "-"
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return 0
    if not rest:
        return None
    total = position = 0
    while position < len(rest):
        part = _DURATION_PART.match(rest, position)
        if part is None:
            return None
        nanos = _part_in_nanos(part[1], (part[2] or "")[1:], part[3])
        if nanos is None:
            return None
        total += nanos
        if total > INT_MAX + 1:
            return None
        position = part.end()
    if negative:
        return -total
    return total if total <= INT_MAX else None


def _part_in_nanos(whole: str, fraction: str, unit_name: str) -> int | None:
    unit = _UNITS.get(unit_name)
    if unit is None or not (whole or fraction) or len(whole.lstrip("0")) > 19:
        return None
    nanos = int(whole or "0") * unit
    if nanos > INT_MAX + 1:
        return None
    # Digits beyond 64 bits are ignored, and the product is a double: Go's arithmetic.
    digits, scale = 0, 1.0
    for digit in fraction:
        if digits > INT_MAX // 10 or digits * 10 + int(digit) > INT_MAX + 1:
            break
        digits = digits * 10 + int(digit)
        scale *= 10
    if digits:
        nanos += int(float(digits) * (float(unit) / scale))
    return nanos if nanos <= INT_MAX + 1 else None


def format_duration(duration: Duration) -> str:
    sign = -1 if duration.nanos < 0 else 1
    seconds, nanos = divmod(abs(duration.nanos), _SECOND)
    return format_seconds(float(sign * seconds) + float(sign * nanos) / 1e9) + "s"


def calendar_of(instant: Timestamp, zone: str = "") -> Calendar:
    """The instant in a zone: a name of the IANA database, `+hh:mm`, or UTC. Raises ValueError."""
    seconds, nanos = divmod(instant.nanos, _SECOND)
    days, rest = divmod(seconds + (_offset(seconds, zone) if zone else 0), _DAY)
    year, month, day = _date_of(days)
    day_of_year = days - _days_since_epoch(year, 1, 1)
    return Calendar(
        year, month, day, day_of_year, (days + 4) % 7, rest // 3600, rest // 60 % 60, rest % 60, nanos // 10**6
    )


def _offset(seconds: int, zone: str) -> int:
    hours, colon, minutes = zone.partition(":")
    if colon:
        hour, minute = parse_int(hours), parse_int(minutes)
        if hour is None or minute is None:
            raise ValueError(f"time zone {zone!r} is no offset from UTC")
        return (hour * 60 - minute if zone.startswith("-") else hour * 60 + minute) * 60
    if zone in ("UTC", "Local"):
        return 0
    # Instants at the ends of the range could leave Python's calendar in the zone; no zone changes there.
    bounded = min(max(seconds, -62_135_510_400), 253_402_214_400)
    offset = (_EPOCH + timedelta(seconds=bounded)).astimezone(_zone(zone)).utcoffset()
    return 0 if offset is None else int(offset.total_seconds())


@lru_cache(maxsize=256)
def _zone(name: str) -> ZoneInfo:
    try:
        if _ZONE_PATH.fullmatch(name):
            return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        pass
    raise ValueError(f"unknown time zone {name}")


def _days_in(year: int, month: int) -> int:
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 29 if leap and month == 2 else _MONTH_DAYS[month - 1]


def _days_since_epoch(year: int, month: int, day: int) -> int:
    """Counts years from March on, so that the leap day is the last one. Also right for the year 0, unlike datetime."""
    shifted = year - (month <= 2)
    era, year_of_era = divmod(shifted, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


def _date_of(days: int) -> tuple[int, int, int]:
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    year = year_of_era + era * 400 + (month <= 2)
    return year, month, day_of_year - (153 * shifted_month + 2) // 5 + 1
