"""Instants in objects: RFC 3339 text, read and written as Kubernetes does, and ages for people."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

from dray.api.quoting import quote
from dray.api.text_cache import cached_by_text

_LAYOUT: Final = "2006-01-02T15:04:05Z07:00"
_INSTANT: Final = re.compile(
    r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
    r"T(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]+))?"
    r"(?:Z|(?P<sign>[+-])(?P<zone_hour>[0-9]{2}):(?P<zone_minute>[0-9]{2}))"
)
_ELEMENTS: Final = (
    ("2006", "[0-9]{4}"),
    ("-", "-"),
    ("01", "[0-9]{2}"),
    ("-", "-"),
    ("02", "[0-9]{2}"),
    ("T", "T"),
    ("15", "[0-9]{1,2}"),
    (":", ":"),
    ("04", "[0-9]{2}"),
    (":", ":"),
    ("05", "[0-9]{2}(?:[.,][0-9]+)?"),
    ("Z07:00", "Z|[+-][0-9]{2}:[0-9]{2}"),
)
"""The parts of an instant as Go names them in its messages."""


class InvalidTime(ValueError):
    """The text is no RFC 3339 instant; the message is Kubernetes'."""


@cached_by_text
def parse_time(text: str) -> datetime:
    """Read an instant; the result is in UTC, with microseconds. Raises InvalidTime."""
    parts = _INSTANT.fullmatch(text)
    if parts is None:
        raise InvalidTime(_explain(text))
    limits = (("month", 1, 12), ("hour", 0, 23), ("minute", 0, 59), ("second", 0, 59))
    for name, low, high in limits:
        if not low <= int(parts[name]) <= high:
            raise InvalidTime(f"parsing time {quote(text)}: {name} out of range")
    zone = UTC if parts["sign"] is None else _zone(text, parts)
    micros = int((parts["fraction"] or "")[:6].ljust(6, "0"))
    year, month, day, hour, minute, second = (int(part) for part in parts.group(1, 2, 3, 4, 5, 6))
    try:
        return datetime(year, month, day, hour, minute, second, micros, zone).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        # Python's calendar starts in year 1, and the zone can lead out of it; Go's says this of days only.
        raise InvalidTime(f"parsing time {quote(text)}: day out of range") from error


def _zone(text: str, parts: re.Match[str]) -> timezone:
    hours, minutes = int(parts["zone_hour"]), int(parts["zone_minute"])
    if hours > 23:
        raise InvalidTime(f"parsing time {quote(text)}: time zone offset hour out of range")
    if minutes > 59:
        raise InvalidTime(f"parsing time {quote(text)}: time zone offset minute out of range")
    offset = timedelta(hours=hours, minutes=minutes)
    return timezone(-offset if parts["sign"] == "-" else offset)


def _explain(text: str) -> str:
    rest = text
    for name, pattern in _ELEMENTS:
        found = re.match(pattern, rest)
        if found is None:
            return f"parsing time {quote(text)} as {quote(_LAYOUT)}: cannot parse {quote(rest)} as {quote(name)}"
        rest = rest[found.end() :]
    return f"parsing time {quote(text)}: extra text: {quote(rest)}"


def format_time(instant: datetime) -> str:
    """As in metadata.creationTimestamp: UTC, whole seconds."""
    return f"{instant.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat()}Z"


def format_micro_time(instant: datetime) -> str:
    """As in leases and events: UTC, microseconds."""
    return f"{instant.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


@cached_by_text
def canonical_time(text: str) -> str:
    """The instant as the API server stores it. Raises InvalidTime."""
    return format_time(parse_time(text))


def format_age(now: datetime, since: str | None) -> str:
    """How long ago that was, as `kubectl get` shows it. Raises InvalidTime."""
    if not since:
        return "<unknown>"
    instant = parse_time(since)
    if instant.year == 1 and instant == datetime(1, 1, 1, tzinfo=UTC):
        return "<unknown>"
    return human_duration(now - instant)


def human_duration(duration: timedelta) -> str:
    """Two units at most, the smaller one only while it says something: `90s`, `5m30s`, `3h`, `2d1h`, `3y45d`."""
    seconds = int(duration.total_seconds())
    if seconds < -1:
        return "<invalid>"
    if seconds < 120:
        return f"{max(seconds, 0)}s"
    minutes, hours = seconds // 60, seconds // 3600
    days = hours // 24
    if minutes < 10:
        return _two_units(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two_units(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two_units(days, "d", hours % 24, "h")
    if days < 365 * 2:
        return f"{days}d"
    if days < 365 * 8:
        return _two_units(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two_units(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"
