from __future__ import annotations

import pytest

from dray.cel.instants import calendar_of, format_duration, format_timestamp, parse_duration, parse_timestamp
from dray.cel.values import Duration, Timestamp


def instant(text: str) -> Timestamp:
    parsed = parse_timestamp(text)
    assert parsed is not None
    return parsed


@pytest.mark.parametrize(
    "text",
    [
        "1970-01-01T00:00:00Z",
        "2024-02-29T23:59:59.123456789+02:00",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59.999999999Z",
        "1969-12-31T23:59:59.5-08:30",
    ],
)
def test_instants_read_back_as_they_were_written(text: str) -> None:
    assert format_timestamp(instant(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2024-01-01",
        "2023-02-29T00:00:00Z",
        "2024-13-01T00:00:00Z",
        "2024-01-01T24:00:00Z",
        "2024-01-01T00:00:60Z",
        "2024-01-01T00:00:00",
        "2024-01-01T00:00:00+2:00",
        "24-01-01T00:00:00Z",
    ],
)
def test_these_are_no_instants(text: str) -> None:
    assert parse_timestamp(text) is None


@pytest.mark.parametrize(
    ("text", "nanos"),
    [
        ("0", 0),
        ("1h30m", 5400 * 10**9),
        ("-1.5s", -1_500_000_000),
        (".5ms", 500_000),
        ("1us", 1000),
        ("1µs", 1000),
        ("+3ns", 3),
        ("9223372036854775807ns", 2**63 - 1),
        ("-9223372036854775808ns", -(2**63)),
    ],
)
def test_durations(text: str, nanos: int) -> None:
    assert parse_duration(text) == nanos


@pytest.mark.parametrize("text", ["", "1", "h", "1x", "1h1", "9223372036854775808ns", "1 h", ".s", "--1s", "1e3s"])
def test_these_are_no_durations(text: str) -> None:
    assert parse_duration(text) is None


def test_durations_are_written_in_seconds() -> None:
    assert format_duration(Duration(5400 * 10**9)) == "5400s"
    assert format_duration(Duration(-1)) == "-0.000000001s"
    assert format_duration(Duration(0)) == "0s"


def test_a_calendar_in_a_zone() -> None:
    calendar = calendar_of(instant("2023-01-01T00:00:00Z"), "America/Los_Angeles")
    assert (calendar.year, calendar.month, calendar.day, calendar.hour) == (2022, 12, 31, 16)
    assert calendar.day_of_year == 364
    assert calendar.day_of_week == 6
    assert calendar_of(instant("2023-07-01T00:00:00Z"), "America/Los_Angeles").hour == 17
    assert calendar_of(instant("2023-01-01T00:00:00Z"), "-08:30").minute == 30
    assert calendar_of(instant("0001-01-01T00:00:00Z"), "-08:30").year == 0


@pytest.mark.parametrize("zone", ["No/Where", "../etc/passwd", "/etc/localtime", "1:x", "europe/berlin2", "\\x"])
def test_unknown_zones_are_refused(zone: str) -> None:
    with pytest.raises(ValueError, match="time zone"):
        calendar_of(instant("2023-01-01T00:00:00Z"), zone)
