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
    """There is nothing to compare with: no file, none of this kind, or one that isn't JSON."""


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
        elif not path.exists():
            raise DataMissing(f"no such file: {path}")
        elif path.name.removesuffix(".gz").endswith(suffixes):
            yield path


def read_text(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


def load_json(path: Path) -> Any:
    try:
        return json.loads(read_text(path))
    except (OSError, EOFError, ValueError, RecursionError) as error:
        raise DataMissing(f"{path}: no data of ours: {error}") from None


def load_lines(path: Path) -> Iterator[Any]:
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if line.strip():
            try:
                yield json.loads(line)
            except ValueError as error:
                raise DataMissing(f"{path}:{number}: no data of ours: {error}") from None


def load(path: Path) -> Any:
    """What the file holds; of a file of lines, the list of them."""
    return list(load_lines(path)) if ".jsonl" in path.name else load_json(path)


def iter_data(paths: Iterable[Path], is_mine: Callable[[Any], bool]) -> Iterator[tuple[Path, Any]]:
    """What the files hold. Of folders, which may hold data of all kinds, only the files whose content is of this kind.

    `is_mine` gets the content, or the first item if that is a list.
    """
    for path in paths:
        if not path.is_dir():
            yield from ((file, load(file)) for file in iter_files([path]))
            continue
        found = False
        for file in iter_files([path]):
            content = load(file)
            if is_mine(content[0] if isinstance(content, list) and content else content):
                found = True
                yield file, content
        if not found:
            raise DataMissing(f"{path}: no data of this kind in it")


def has_keys(*alternatives: str) -> Callable[[Any], bool]:
    """Whether something is an object with one of these keys; `a b` stands for both, `-a` for its absence."""

    def is_so(content: Any) -> bool:
        return isinstance(content, dict) and any(
            all((key.removeprefix("-") in content) != key.startswith("-") for key in alternative.split())
            for alternative in alternatives
        )

    return is_so


def has_vectors(**keys: str) -> Callable[[Any], bool]:
    """Whether something is an object with one of these sections, and the section's first vector has this key."""

    def is_so(content: Any) -> bool:
        return isinstance(content, dict) and any(
            isinstance(vectors := content.get(section), list) and vectors and has_keys(key)(vectors[0])
            for section, key in keys.items()
        )

    return is_so


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
