"""Loads data files, runs cases, reports differences. Knows nothing of what is compared."""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

DATA = Path(__file__).resolve().parents[3] / "shared" / "conformance"


@dataclass(frozen=True)
class Case:
    """One comparison: `check` returns None if our answer is the expected one, else the difference for people."""

    name: str
    check: Callable[[], str | None]


class DataMissing(Exception):
    pass


def default_data() -> Path:
    if not DATA.is_dir():
        raise DataMissing(f"the conformance data is not at {DATA}")
    return DATA


def data_is_required() -> bool:
    return os.environ.get("CI", "").lower() == "true"


def iter_files(paths: Iterable[Path], suffixes: tuple[str, ...] = (".json", ".jsonl")) -> Iterator[Path]:
    """The data files among `paths`, folders searched, `.gz` or not."""
    for path in paths:
        if path.is_dir():
            yield from iter_files(sorted(path.iterdir()), suffixes)
        elif path.name.removesuffix(".gz").endswith(suffixes):
            yield path
        elif not path.exists():
            raise DataMissing(f"no such file: {path}")


def read_text(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


def load_json(path: Path) -> Any:
    return json.loads(read_text(path))


def load_lines(path: Path) -> Iterator[Any]:
    for line in read_text(path).splitlines():
        if line.strip():
            yield json.loads(line)


@dataclass
class Tally:
    passed: int = 0
    failed: int = 0

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed"


def run_cases(cases: Iterable[Case], out: TextIO = sys.stdout) -> Tally:
    tally = Tally()
    for case in cases:
        try:
            difference = case.check()
        except Exception as error:  # noqa: BLE001 - an exception of any kind is a failed case, and is shown
            difference = f"raised {type(error).__name__}: {error}"
        if difference is None:
            tally.passed += 1
        else:
            tally.failed += 1
            print(f"FAIL {case.name}\n     {difference}", file=out)
    return tally
