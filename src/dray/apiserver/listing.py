"""Lists: pages that all show one revision, and selectors that look only at what they need."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from dray.api.errors import BadRequest, Expired
from dray.api.meta import Json
from dray.apiserver import refusals
from dray.apiserver.options import ListOptions
from dray.apiserver.records import Record, encode_json
from dray.apiserver.registry import Registry
from dray.apiserver.resources import Row
from dray.apiserver.targets import Target
from dray.store.errors import Compacted, FutureRevision
from dray.store.interface import Entry, RangeResult

_TOKEN_VERSION: Final = "meta.k8s.io/v1"
_SCAN: Final = 500
"""How many objects a page with a selector looks at in one go."""


class Page(NamedTuple):
    records: list[Record]
    revision: int
    continue_token: str
    remaining: int | None
    """How many objects follow; unknown (None) with selectors, and on the last page."""


class ContinueExpired(Expired):
    """The rest of a list, as of its first page, is gone; the token gets the rest as of now."""

    def __init__(self, continue_token: str) -> None:
        super().__init__(refusals.CONTINUE_TOO_OLD)
        self.continue_token = continue_token

    def status(self) -> Json:
        return {**super().status(), "metadata": {"continue": self.continue_token}}


class _Labels(msgspec.Struct):
    labels: dict[str, str] = {}


class _LabelsOnly(msgspec.Struct):
    metadata: _Labels


_decode_labels: Final = msgspec.json.Decoder(_LabelsOnly).decode


async def list_page(registry: Registry, target: Target, options: ListOptions) -> Page:
    """Raises BadRequest, Expired, ServerTimeout."""
    row = target.row
    prefix = row.range_prefix(target.namespace)
    start_after, revision, consistent = "", 0, True
    if options.continue_token:
        if options.resource_version not in ("", "0"):
            raise BadRequest("specifying resource version is not allowed when using continue")
        start_after, revision = _read_token(options.continue_token, prefix)
        consistent = revision >= 0
    elif options.resource_version:
        revision = await _revision_to_read(registry, options)
    try:
        return await _read_page(registry, row, prefix, options, start_after, max(revision, 0))
    except Compacted:
        if not (options.continue_token and consistent):
            raise refusals.expired() from None
        raise ContinueExpired(_token(start_after, prefix, -1)) from None
    except FutureRevision as error:
        raise refusals.too_large_revision(error.revision, error.current) from None


async def find_records(registry: Registry, target: Target, options: ListOptions) -> tuple[list[Record], int]:
    """All objects that the options select, as of now."""
    page = await list_page(registry, target, ListOptions(labels=options.labels, fields=options.fields))
    return page.records, page.revision


async def _revision_to_read(registry: Registry, options: ListOptions) -> int:
    """0 for the current one. A list "not older than" something we don't have yet can't be answered."""
    wanted = parse_revision(options.resource_version)
    exact = options.match == "Exact" or (not options.match and options.limit > 0 and wanted > 0)
    current = registry.store.current_revision
    if wanted > current:
        raise refusals.too_large_revision(wanted, current)
    return wanted if exact else 0


def parse_revision(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 19:
        raise refusals.invalid_revision(text)
    return int(text)


async def _read_page(
    registry: Registry, row: Row, prefix: str, options: ListOptions, start_after: str, revision: int
) -> Page:
    store, limit = registry.store, options.limit
    if not options.selects:
        result = await store.range(prefix, revision=revision, limit=limit, start_after=start_after)
        records = [Record.from_entry(row, entry) for entry in result.entries]
        token = _token(result.entries[-1].key, prefix, result.revision) if result.remaining else ""
        return Page(records, result.revision, token, result.remaining or None)
    matches = entry_filter(row, options)
    found: list[Record] = []
    while True:
        result = await store.range(
            prefix, revision=revision, limit=max(limit, _SCAN) if limit else 0, start_after=start_after
        )
        revision = result.revision
        for position, entry in enumerate(result.entries):
            if matches(entry):
                found.append(Record.from_entry(row, entry))
                if limit and len(found) == limit and (result.remaining or position + 1 < len(result.entries)):
                    return Page(found, revision, _token(entry.key, prefix, revision), None)
        if not result.remaining:
            return Page(found, revision, "", None)
        start_after = _last_key(result)


def _last_key(result: RangeResult) -> str:
    return result.entries[-1].key


def entry_filter(row: Row, options: ListOptions) -> Callable[[Entry], bool]:
    """Whether an entry is selected. Names are read off the key, labels without the rest of the object."""
    labels, fields = options.labels, options.fields
    name = fields.exact_value("metadata.name")
    only_name = name is not None and len(fields.requirements) == 1

    def matches(entry: Entry) -> bool:
        if name is not None and entry.key.rpartition("/")[2] != name:
            return False
        if labels is not None and not labels.matches(_decode_labels(entry.value).metadata.labels):
            return False
        if not fields.requirements or only_name:
            return True
        return fields.matches_object(Record.from_entry(row, entry).obj)

    return matches


def object_filter(options: ListOptions) -> Callable[[Json], bool]:
    """The same for objects that are decoded already."""
    labels, fields = options.labels, options.fields

    def matches(obj: Json) -> bool:
        if labels is not None and not labels.matches(obj["metadata"].get("labels", {})):
            return False
        return fields.matches_object(obj)

    return matches


def _token(key: str, prefix: str, revision: int) -> str:
    content = {"v": _TOKEN_VERSION, "rv": revision, "start": key.removeprefix(prefix) + "\0"}
    return base64.urlsafe_b64encode(encode_json(content)).decode().rstrip("=")


class _Token(msgspec.Struct):
    v: str
    rv: int
    start: str


def _read_token(token: str, prefix: str) -> tuple[str, int]:
    """The key to go on after, and the revision; -1 stands for the current one."""
    try:
        padded = token + "=" * (-len(token) % 4)
        content = msgspec.json.decode(base64.b64decode(padded, altchars=b"-_", validate=True), type=_Token)
    except (binascii.Error, ValueError, msgspec.MsgspecError) as error:
        raise BadRequest(f"continue key is not valid: {error}") from None
    if content.v != _TOKEN_VERSION:
        raise BadRequest(f'continue key is not valid: server does not recognize this encoded version "{content.v}"')
    if content.rv == 0:
        raise BadRequest("continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
    if not content.start:
        raise BadRequest("continue key is not valid: encoded start key empty (version meta.k8s.io/v1)")
    return prefix + content.start.removesuffix("\0"), content.rv
