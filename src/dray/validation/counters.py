"""Counters that partitions of a device share. Handwritten rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dray.api.devices import Counter, CounterSet, DeviceCounterConsumption
from dray.validation.fields import Errors, Path, mark_covered, required, too_many
from dray.validation.lists import check_unique, is_too_many
from dray.validation.names import check_label, dns_label_problems

MAX_COUNTER_SETS: Final = 8
MAX_COUNTERS: Final = 32
MAX_CONSUMPTIONS: Final = 2


def check_counter_sets(sets: tuple[CounterSet, ...], path: Path, errors: Errors) -> None:
    if is_too_many(sets, MAX_COUNTER_SETS, path, errors, covered=True):
        return
    for position, counter_set in enumerate(sets):
        if not _is_fine(counter_set.name, counter_set.counters):
            place = path.index(position)
            _report_name(counter_set.name, place.child("name"), errors)
            _report_counters(counter_set.counters, place.child("counters"), errors)
    check_unique((counter_set.name for counter_set in sets), path, errors, covered=True)


def check_consumed_counters(consumed: tuple[DeviceCounterConsumption, ...], path: Path, errors: Errors) -> None:
    if is_too_many(consumed, MAX_CONSUMPTIONS, path, errors, covered=True):
        return
    for position, consumption in enumerate(consumed):
        if not _is_fine(consumption.counter_set, consumption.counters):
            place = path.index(position)
            _report_name(consumption.counter_set, place.child("counterSet"), errors)
            _report_counters(consumption.counters, place.child("counters"), errors)
    check_unique((consumption.counter_set for consumption in consumed), path, errors, covered=True)


def _is_fine(name: str, counters: Mapping[str, Counter]) -> bool:
    if dns_label_problems(name) or not 0 < len(counters) <= MAX_COUNTERS:
        return False
    return not any(dns_label_problems(counter) for counter in counters)


def _report_name(name: str, path: Path, errors: Errors) -> None:
    if not name:
        errors += mark_covered([required(path)])
    else:
        check_label(name, path, errors, covered=True)


def _report_counters(counters: Mapping[str, Counter], path: Path, errors: Errors) -> None:
    if not counters:
        errors += mark_covered([required(path)])
    elif len(counters) > MAX_COUNTERS:
        errors.append(too_many(path, len(counters), MAX_COUNTERS))
    else:
        for name in counters:
            check_label(name, path, errors, covered=True)
