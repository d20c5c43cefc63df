"""Objects and lists in the form that the client wants: as they are, as a Table, or just their metadata."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from dray.api.meta import Json
from dray.api.printing import print_table
from dray.apiserver.listing import Page
from dray.apiserver.media import YAML, Wanted, write_yaml
from dray.apiserver.record_cache import Batch
from dray.apiserver.records import Record, encode_json
from dray.apiserver.resources import Row
from dray.apiserver.targets import Target
from dray.runtime.client import EventType

_META: Final = "meta.k8s.io/"


def render_object(record: Record, target: Target, wanted: Wanted, now: datetime, include: str) -> bytes:
    if wanted.is_table:
        body = encode_json(_table(target, [record.to_json(target.version)], record.revision, wanted, now, include))
    elif wanted.is_partial:
        body = encode_json(_partial(record.to_json(target.version), wanted))
    else:
        body = record.to_bytes(target.version)
    return write_yaml(body) if wanted.media == YAML else body


def render_page(page: Page, target: Target, wanted: Wanted, now: datetime, include: str) -> bytes:
    metadata: Json = {"resourceVersion": str(page.revision)}
    if page.continue_token:
        metadata["continue"] = page.continue_token
    if page.remaining:
        metadata["remainingItemCount"] = page.remaining
    version = target.version
    if wanted.is_table:
        table = _table(target, (record.to_json(version) for record in page.records), 0, wanted, now, include)
        body = encode_json({**table, "metadata": metadata})
    elif wanted.is_partial:
        items = [_partial(record.to_json(version), wanted) for record in page.records]
        partial = {"kind": "PartialObjectMetadataList", "apiVersion": _META + wanted.version}
        body = encode_json({**partial, "metadata": metadata, "items": items})
    else:
        body = list_bytes(target.row, version, metadata, (record.to_item(version) for record in page.records))
    return write_yaml(body) if wanted.media == YAML else body


def list_bytes(row: Row, version: str, metadata: Json, items: Iterable[bytes]) -> bytes:
    head = f'{{"kind":"{row.kind}List","apiVersion":"{row.api_version(version)}","metadata":'.encode()
    return b"".join((head, encode_json(metadata), b',"items":[', b",".join(items), b"]}"))


def render_batch(batch: Batch, target: Target, wanted: Wanted, now: datetime, include: str) -> bytes:
    """A batch of events, one per line."""
    version = target.version
    if not (wanted.is_table or wanted.is_partial):
        written = batch.written.get(version)
        if written is None:
            lines = [
                b'{"type":"%b","object":%b}\n' % (_NAMES[kind], record.to_bytes(version))
                for kind, record in batch.events
            ]
            written = batch.written[version] = b"".join(lines)
        return written
    lines = []
    for kind, record in batch.events:
        obj = record.to_json(target.version)
        if wanted.is_table:
            rows = [] if kind is EventType.BOOKMARK else [obj]
            obj = _table(target, rows, int(obj["metadata"]["resourceVersion"]), wanted, now, include)
        else:
            obj = _partial(obj, wanted)
        lines.append(encode_json({"type": kind.value, "object": obj}) + b"\n")
    return b"".join(lines)


_NAMES: Final = {kind: kind.value.encode() for kind in EventType}


def render_error_event(status: Json) -> bytes:
    return encode_json({"type": "ERROR", "object": status}) + b"\n"


def _table(target: Target, objects: Iterable[Json], revision: int, wanted: Wanted, now: datetime, include: str) -> Json:
    objects = list(objects)
    table = print_table(target.api_version, target.row.kind, objects, now)
    table["apiVersion"] = _META + wanted.version
    if revision:
        table["metadata"] = {"resourceVersion": str(revision)}
    for row, obj in zip(table["rows"], objects, strict=True):
        match include:
            case "None":
                row["object"] = None
            case "Object":
                kind = {"kind": target.row.kind, "apiVersion": target.api_version}
                row["object"] = {**kind, **obj}
            case _:
                row["object"]["apiVersion"] = _META + wanted.version
    return table


def _partial(obj: Json, wanted: Wanted) -> Json:
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": _META + wanted.version,
        "metadata": obj["metadata"],
    }
