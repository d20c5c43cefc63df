from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from dray.api.times import (
    InvalidTime,
    canonical_time,
    format_age,
    format_micro_time,
    format_time,
    human_duration,
    parse_time,
)

NOW = datetime(2026, 8, 1, 12, tzinfo=UTC)


def test_offsets_and_fractions_are_read() -> None:
    assert parse_time("2026-08-01T14:00:00.5+02:00") == NOW + timedelta(milliseconds=500)


def test_stored_times_are_utc_and_whole_seconds() -> None:
    assert canonical_time("2026-08-01T14:00:00.987+02:00") == "2026-08-01T12:00:00Z"
    assert format_time(NOW.astimezone(timezone(timedelta(hours=3)))) == "2026-08-01T12:00:00Z"


def test_leases_have_microseconds() -> None:
    assert format_micro_time(NOW) == "2026-08-01T12:00:00.000000Z"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("yesterday", 'as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"'),
        ("2026-08-01 12:00:00Z", 'cannot parse " 12:00:00Z" as "T"'),
        ("2026-13-01T12:00:00Z", "month out of range"),
        ("2026-02-30T12:00:00Z", "day out of range"),
        ("2026-02-03T12:00:00Zx", 'extra text: "x"'),
        ("2026-02-03T12:00:00+25:00", "time zone offset hour out of range"),
    ],
)
def test_a_bad_time_says_where_it_is_bad(text: str, reason: str) -> None:
    with pytest.raises(InvalidTime) as failure:
        parse_time(text)
    assert reason in str(failure.value)


def test_ages_of_unset_and_future_times_are_marked() -> None:
    assert format_age(NOW, None) == "<unknown>"
    assert format_age(NOW, "0001-01-01T00:00:00Z") == "<unknown>"
    assert format_age(NOW, "2026-08-01T12:00:05Z") == "<invalid>"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0s"),
        (119, "119s"),
        (120, "2m"),
        (599, "9m59s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600 + 60, "3h1m"),
        (8 * 3600, "8h"),
        (48 * 3600 + 3600, "2d1h"),
        (8 * 86400, "8d"),
        (2 * 365 * 86400 + 86400, "2y1d"),
        (8 * 365 * 86400 + 86400, "8y"),
    ],
)
def test_durations_have_as_much_detail_as_is_useful(seconds: int, text: str) -> None:
    assert human_duration(timedelta(seconds=seconds)) == text
