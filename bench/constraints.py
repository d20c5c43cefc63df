"""CEL constraints over sets of devices (KEP-5254): rings, grids, and the cases that have to try everything.

Prints the time, and how often the expression was evaluated. Run: python bench/constraints.py
"""

from __future__ import annotations

import itertools
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.unit.allocator.world import (
    ask,
    make_claim,
    make_class,
    make_constraint,
    make_devices,
    make_holder,
    make_index,
    make_request,
    make_slice,
)

from dray.allocator.index import Index
from dray.api.claims import ResourceClaim

MLA = "mla.example.com"
RING = (
    "size(devices) == 4 && devices.map(d, d.attributes['mla.example.com'].deviceid).max() - "
    "devices.map(d, d.attributes['mla.example.com'].deviceid).min() == 3"
)
NEVER = "devices.map(d, d.attributes['mla.example.com'].deviceid).sum() == 1000"
GRID = """size(devices) == 4 &&
    devices.all(d,
        devices.filter(other,
            d != other &&
            ((d.attributes["mla.example.com"].row == other.attributes["mla.example.com"].row &&
              (d.attributes["mla.example.com"].col == other.attributes["mla.example.com"].col + 1 ||
               d.attributes["mla.example.com"].col == other.attributes["mla.example.com"].col - 1)) ||
             (d.attributes["mla.example.com"].col == other.attributes["mla.example.com"].col &&
              (d.attributes["mla.example.com"].row == other.attributes["mla.example.com"].row + 1 ||
               d.attributes["mla.example.com"].row == other.attributes["mla.example.com"].row - 1)))
        ).size() >= 2
    )"""
SORTED = "devices.map(d, d.attributes['mla.example.com'].deviceid).isSorted()"
DESCENDING = (
    "devices[0].attributes['mla.example.com'].deviceid > devices[1].attributes['mla.example.com'].deviceid && "
    "devices[1].attributes['mla.example.com'].deviceid > devices[2].attributes['mla.example.com'].deviceid"
)


def make_ring(size: int, used: Sequence[int]) -> Index:
    devices = make_devices(size, deviceid=lambda number: number)
    return make_cluster(devices, used)


def make_grid(rows: int, columns: int, used: Sequence[int]) -> Index:
    devices = make_devices(rows * columns, row=lambda n: n // columns, col=lambda n: n % columns)
    return make_cluster(devices, used)


def make_cluster(devices: tuple[object, ...], used: Sequence[int]) -> Index:
    index = make_index(make_slice(devices, driver=MLA), classes=[make_class("mla")])  # type: ignore[arg-type]
    index.apply_claim(make_holder("holder", *(f"dev-{number}" for number in used), driver=MLA))
    return index


def wanting(count: int, expression: str) -> ResourceClaim:
    request = make_request("mla", count, device_class="mla")
    return make_claim(request, constraints=[make_constraint("mla", cel=expression)])


def measure(title: str, index: Index, claim: ResourceClaim) -> list[str] | None:
    start = time.perf_counter()
    answer = ask(index, claim)
    elapsed = (time.perf_counter() - start) * 1000
    evaluations = index.statistics.constraint_evaluations
    print(f"{title:62} {elapsed:9.1f} ms {evaluations:8} evaluations  -> {answer[0] if answer else None}")
    return answer[0] if answer else None


def first_block(free: set[int]) -> list[str] | None:
    """By brute force: the first four free devices, in device order, that form a 2x2 block."""
    for four in itertools.combinations(sorted(free), 4):
        a, b, c, d = four
        if b == a + 1 and a % 8 < 7 and c == a + 8 and d == a + 9:
            return [f"dev-{number}" for number in four]
    return None


def measure_grids(seeds: int) -> None:
    wrong = 0
    times: list[float] = []
    evaluations: list[int] = []
    claim = wanting(4, GRID)
    for seed in range(seeds):
        used = random.Random(seed).sample(range(64), 38)
        index = make_grid(8, 8, used)
        start = time.perf_counter()
        answer = ask(index, claim)
        times.append((time.perf_counter() - start) * 1000)
        evaluations.append(index.statistics.constraint_evaluations)
        wrong += (answer[0] if answer else None) != first_block(set(range(64)) - set(used))
    print(
        f"{f'2x2 block in an 8x8 grid, 60% taken, {seeds} seeds':62} {max(times):9.1f} ms at most, "
        f"{sum(times) / seeds:.1f} on average, at most {max(evaluations)} evaluations, {wrong} differ from brute force"
    )


def main() -> None:
    measure("4 in a row of a ring of 64, only the last 4 are free", make_ring(64, range(60)), wanting(4, RING))
    measure("4 in a row of a ring of 64, all free", make_ring(64, ()), wanting(4, RING))
    measure("4 in a row of a ring of 64, every second one free", make_ring(64, range(0, 64, 2)), wanting(4, RING))
    measure("6 of 12, ids that never add up", make_ring(12, ()), wanting(6, NEVER))
    measure("3 of 12 in descending order: never true", make_ring(12, ()), wanting(3, DESCENDING))
    measure("6 of 12 in ascending order: true at once", make_ring(12, ()), wanting(6, SORTED))
    measure_grids(100)


if __name__ == "__main__":
    main()
