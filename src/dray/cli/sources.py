"""Manifest files for commands: files, directories and standard input, read into objects that know where they stand."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from dray.api import exact
from dray.api.manifests import Document, ManifestError, iter_documents
from dray.api.meta import Json, ObjectKey
from dray.api.quoting import quote

MAX_FILE: Final = 32 * 1024 * 1024
SUFFIXES: Final = (".yaml", ".yml", ".json")
STDIN: Final = "-"


class UnusableInput(Exception):
    """A file can't be read at all; the message names it."""


@dataclass(frozen=True)
class Source:
    """One input: its name as messages show it, and its text."""

    name: str
    text: str


@dataclass(frozen=True)
class BrokenDocument:
    """A document that isn't YAML or JSON, or isn't an object."""

    source: str
    line: int
    reason: str


@dataclass(frozen=True)
class ManifestObject:
    """An object of a manifest. `prefix` leads to it within the document if it is an item of a list."""

    source: str
    document: Document = field(repr=False)
    value: Json = field(repr=False)
    prefix: exact.Path = ()

    @property
    def api_version(self) -> str:
        return _text(self.value.get("apiVersion"))

    @property
    def kind(self) -> str:
        return _text(self.value.get("kind"))

    @property
    def key(self) -> ObjectKey:
        metadata = self.value.get("metadata")
        names: Json = metadata if isinstance(metadata, dict) else {}
        name = _text(names.get("name")) or _text(names.get("generateName"))
        return ObjectKey(_text(names.get("namespace")), name)

    @property
    def json_text(self) -> bytes:
        """For the decoder; as it was written if that was JSON, so that duplicate fields are still there."""
        return msgspec.json.encode(self.value) if self.prefix else self.document.text

    def line_of(self, path: exact.Path = ()) -> int:
        is_flat = self.kind == "ResourceSlice" and self.api_version.endswith(("v1beta1", "v1alpha3"))
        if is_flat and path[:2] == ("spec", "devices") and path[3:4] not in ((), ("name",), ("basic",)):
            # Kubernetes reports some problems of devices with the path of v1, whatever the version.
            path = (*path[:3], "basic", *path[3:])
        return self.document.line_of((*self.prefix, *path))

    def __str__(self) -> str:
        """On one line, whatever the name is made of."""
        shown = f"{self.kind or 'object'} {self.key}".rstrip()
        return shown if shown.isprintable() else quote(shown)[1:-1]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def read_sources(names: Iterable[str]) -> Iterator[Source | UnusableInput]:
    """Files as they are named, directories with all manifests below them, `-` for standard input."""
    for name in names:
        if name == STDIN:
            yield _read("standard input", None)
        elif not name:
            yield UnusableInput("--file: empty name")
        elif (path := Path(name)).is_dir():
            files = sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES and file.is_file())
            if not files:
                yield UnusableInput(f"{name}: no file in it ends in {', '.join(SUFFIXES)}")
            yield from (_read(str(file), file) for file in files)
        else:
            yield _read(name, path)


def _read(name: str, path: Path | None) -> Source | UnusableInput:
    try:
        if path is None:
            data = sys.stdin.buffer.read(MAX_FILE + 1)
        else:
            with path.open("rb") as file:
                data = file.read(MAX_FILE + 1)
    except OSError as error:
        return UnusableInput(f"{name}: {error.strerror or error}")
    if len(data) > MAX_FILE:
        return UnusableInput(f"{name}: larger than {MAX_FILE // 1024 // 1024} MiB, the most that is read")
    try:
        return Source(name, data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        return UnusableInput(f"{name}: not UTF-8 text (byte {error.start})")


def iter_objects(source: Source) -> Iterator[ManifestObject | BrokenDocument]:
    """The objects in a source, those in lists one by one."""
    for part in iter_documents(source.text):
        if isinstance(part, ManifestError):
            yield BrokenDocument(source.name, part.line, part.message)
        elif not isinstance(value := part.value, dict):
            found = "a list" if isinstance(value, list) else f"the value {value!r}"
            yield BrokenDocument(source.name, part.line_of(()), f"expected an object, found {found}")
        else:
            yield from _iter_items(ManifestObject(source.name, part, value))


def _iter_items(obj: ManifestObject) -> Iterator[ManifestObject | BrokenDocument]:
    items = obj.value.get("items")
    if not obj.kind.endswith("List") or not isinstance(items, list):
        yield obj
        return
    item_type = {} if obj.kind == "List" else {"apiVersion": obj.api_version, "kind": obj.kind.removesuffix("List")}
    for index, item in enumerate(items):
        prefix = ("items", index)
        if isinstance(item, dict):
            yield ManifestObject(obj.source, obj.document, {**item_type, **item}, prefix)
        else:
            yield BrokenDocument(obj.source, obj.line_of(prefix), "expected an object as item of a list")
