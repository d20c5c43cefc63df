"""The kinds of conformance data: where the shared data of each lies, and which module compares it."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.conformance.runner import Case


class Kind(NamedTuple):
    module: str
    data: tuple[str, ...]
    """Paths below the shared conformance folder."""


KINDS: dict[str, Kind] = {
    "validation": Kind("validation", ("api/validation",)),
    "conversion": Kind("conversion", ("api/conversion.json.gz",)),
    "quantity": Kind("quantity", ("api/quantity.json.gz",)),
    "semver": Kind("semver", ("api/semver.json.gz",)),
    "nodeselector": Kind("nodeselector", ("api/nodeselector.json.gz",)),
    "names": Kind("names", ("api/names.json.gz",)),
    "quota": Kind("quota", ("api/quota.json.gz",)),
    "statusauthz": Kind("statusauthz", ("api/statusauthz.json.gz",)),
    "printing": Kind("printing", ("api/printing.json.gz",)),
    "cel": Kind("cel", ("cel/kubernetes-cases.json", "cel/micro.json", "cel/fuzz.jsonl.gz")),
    "cel-spec": Kind("cel_spec", ("cel/cel-spec",)),
    "allocator": Kind("allocator", ("allocator/kubernetes-cases.jsonl.gz", "allocator/fuzz.jsonl.gz")),
    "allocator-bench": Kind("allocator_bench", ("allocator/bench",)),
    "transcripts": Kind("transcripts", ("apiserver/transcripts.json",)),
    "lifecycle": Kind("lifecycle", ("lifecycle/lifecycle.json",)),
    "queueing": Kind("queueing", ("queueing/cases.json.gz",)),
}


class NotThereYet(Exception):
    """The code behind this kind of data doesn't exist yet."""


def load_kind(name: str) -> Callable[[list[Path]], Iterator[Case]]:
    """The `iter_cases(paths)` of the kind's module."""
    module_name = f"tests.conformance.{KINDS[name].module}"
    if importlib.util.find_spec(module_name) is None:
        raise NotThereYet(f"{name}: the code that this data is about doesn't exist yet")
    iter_cases: Callable[[list[Path]], Iterator[Case]] = importlib.import_module(module_name).iter_cases
    return iter_cases
