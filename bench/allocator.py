"""The allocator against Kubernetes' own, on the recorded scenarios: cold, warm and remembered, beside the Go figures.

    cold        a fresh index and nothing compiled: slices are read in, CEL is compiled, the search is run
    warm        shapes and templates are known, as in a scheduler; what is in use is new, so the search is run
    remembered  an equal node with the same devices in use was asked about before

All times are the fastest of several runs; the Go figures are the recorded median and the fastest run.

Run: python bench/allocator.py [NAME...]
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.conformance import allocator as scenarios
from tests.conformance.runner import default_data, iter_files, load_json

from dray.allocator.index import Index
from dray.api.claims import ResourceClaim
from dray.api.meta import Json
from dray.cel.program import forget_programs

RUNS = 7


def forget_answers(index: Index) -> None:
    for program in index._compiler._programs.values():
        for table in program.tables.values():
            table.answers.clear()


def measure(action: Callable[[], object], prepare: Callable[[], object] = lambda: None, runs: int = RUNS) -> float:
    """Fastest time in milliseconds: what else runs on the machine only ever adds."""
    times: list[float] = []
    for _ in range(runs):
        prepare()
        gc.collect()
        gc.disable()
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
        gc.enable()
    return min(times) * 1000


def repeat(action: Callable[[], object], least: float = 0.05) -> tuple[Callable[[], object], int]:
    """Many calls in one, for actions that are too short to be timed."""
    start = time.perf_counter()
    action()
    once = time.perf_counter() - start
    number = max(1, int(least / max(once, 1e-7)))

    def many() -> None:
        for _ in range(number):
            action()

    return many, number


class Scenario:
    def __init__(self, raw: Json) -> None:
        self.raw = raw
        self.name = raw["name"]
        self.claims = scenarios.read_claims(raw)
        self.nodes = [node["metadata"]["name"] for node in raw.get("nodes") or [raw["node"]]]
        parts = scenarios.read_parts(raw)
        self.make_index: Callable[[], Index] = lambda: scenarios.fill_index(parts)
        self.index = self.make_index()

    def ask(self, index: Index, claims: list[ResourceClaim]) -> None:
        if len(self.nodes) == 1:
            scenarios.ask(index, self.nodes[0], claims)
        else:
            for _ in index.allocate_all(claims):
                pass

    def cold(self) -> float:
        return measure(lambda: self.ask(self.make_index(), self.claims), forget_programs)

    def warm(self) -> float:
        if len(self.nodes) > 1:
            return measure(lambda: self.ask(self.index, self.claims), lambda: forget_answers(self.index))

        def once() -> None:
            forget_answers(self.index)
            self.ask(self.index, self.claims)

        many, number = repeat(once)
        return measure(many) / number

    def remembered(self) -> float:
        many, number = repeat(lambda: self.ask(self.index, self.claims))
        return measure(many) / number

    def which_fit(self) -> float:
        many, number = repeat(lambda: self.index.fitting(self.claims).count)
        return measure(many) / number


def main(names: list[str]) -> None:
    columns = ("Go ms", "(min)", "cold ms", "warm ms", "remembered", "Go/warm")
    print(f"{'scenario':28} " + " ".join(f"{column:>10}" for column in columns))
    for path in iter_files([default_data() / "allocator" / "bench"]):
        if names and not any(name in path.name for name in names):
            continue
        scenario = Scenario(load_json(path))
        recorded = scenario.raw["upstream"]["selected"]
        go, fastest = recorded["ns"] / 1e6, recorded["ns_min"] / 1e6
        cold, warm, remembered = scenario.cold(), scenario.warm(), scenario.remembered()
        times = (go, fastest, cold, warm, remembered, go / warm)
        print(f"{scenario.name:28} " + " ".join(f"{each:10.4f}" for each in times))
        if len(scenario.nodes) > 1:
            print(f"{'':28} which of {len(scenario.nodes)} nodes fit, warm: {scenario.which_fit():.3f} ms")


if __name__ == "__main__":
    main(sys.argv[1:])
