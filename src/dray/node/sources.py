"""ConfigMaps and Secrets that a pod is configured with: which there are, fetched, and looked up."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal, NamedTuple

from dray.api.errors import NotFound
from dray.api.meta import Json
from dray.api.resources import CONFIG_MAPS, SECRETS
from dray.runtime.client import Client

Data = Mapping[str, bytes]


class ConfigUnusable(Exception):
    """What a pod is configured with is missing, or nothing that this agent knows; the text names it."""


class Source(NamedTuple):
    kind: Literal["ConfigMap", "Secret"]
    name: str


_KEY_REFERENCES: Final = ("configMapKeyRef", "secretKeyRef")
_REFERENCES: Final = ("configMapRef", "secretRef")


def iter_container_sources(container: Json) -> Iterator[Source]:
    for item in container.get("envFrom") or ():
        yield from (source_of(field, item[field]) for field in _REFERENCES if field in item)
    for item in container.get("env") or ():
        origin = item.get("valueFrom") or {}
        yield from (source_of(field, origin[field]) for field in _KEY_REFERENCES if field in origin)


def iter_volume_sources(volume: Json) -> Iterator[Source]:
    for part in (volume, *((volume.get("projected") or {}).get("sources") or ())):
        yield from (source_of(field, part[field]) for field in ("configMap", "secret") if field in part)


def source_of(field: str, reference: Json) -> Source:
    """A Secret is called `secretName` in a volume and `name` elsewhere."""
    kind: Literal["ConfigMap", "Secret"] = "Secret" if field.startswith("secret") else "ConfigMap"
    return Source(kind, reference.get("secretName") or reference.get("name") or "")


class FetchedSources:
    """What was found in a namespace. None stands for a source that doesn't exist."""

    def __init__(self, namespace: str = "", found: Mapping[Source, Data | None] | None = None) -> None:
        self._namespace = namespace
        self._found = found or {}

    def read(self, source: Source, *, optional: bool = False) -> Data | None:
        """None if it may be missing and is. Raises ConfigUnusable."""
        data = self._found.get(source)
        if data is None and not optional:
            raise ConfigUnusable(f'{source.kind.lower()} "{source.name}" not found')
        return data

    def read_key(self, source: Source, key: str, *, optional: bool = False) -> bytes | None:
        """None if it may be missing and is. Raises ConfigUnusable."""
        data = self.read(source, optional=optional)
        if data is None:
            return None
        if key not in data and not optional:
            raise ConfigUnusable(f"couldn't find key {key} in {source.kind} {self._namespace}/{source.name}")
        return data.get(key)


async def fetch_sources(client: Client, namespace: str, sources: Iterable[Source]) -> FetchedSources:
    """Raises StatusError."""
    wanted = list(dict.fromkeys(sources))
    if not wanted:
        return FetchedSources(namespace)
    found = await asyncio.gather(*(_fetch(client, namespace, source) for source in wanted))
    return FetchedSources(namespace, dict(zip(wanted, found, strict=True)))


async def _fetch(client: Client, namespace: str, source: Source) -> Data | None:
    try:
        obj = await client.get(CONFIG_MAPS if source.kind == "ConfigMap" else SECRETS, source.name, namespace)
    except NotFound:
        return None
    if source.kind == "Secret":
        return _decoded(obj.get("data"))
    return {key: text.encode() for key, text in (obj.get("data") or {}).items()} | _decoded(obj.get("binaryData"))


def _decoded(data: Json | None) -> dict[str, bytes]:
    return {key: base64.b64decode(text) for key, text in (data or {}).items()}
