"""An object as it is stored, and as it goes out: the same bytes with the revision put in.

Values are JSON that begins with kind, apiVersion and metadata, in this order, and hold no resourceVersion. So the
revision goes to a place that is the same in all objects of a kind, a list is a join of bytes, and nothing is decoded
that nobody looks at.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

import msgspec

from dray.api.meta import Json
from dray.apiserver.managed_fields import Managers, read_managers
from dray.apiserver.strategies import Strategy
from dray.store.interface import Entry

encode_json: Final = msgspec.json.Encoder().encode
decode_json: Final = msgspec.json.Decoder().decode


class StoredKind(Protocol):
    """What of a resource matters to its bytes."""

    @property
    def kind(self) -> str: ...

    @property
    def native_version(self) -> str:
        """The version that is stored; empty if the resource is a view of another one."""
        ...

    @property
    def storage_api_version(self) -> str: ...

    @property
    def head(self) -> bytes:
        """How every stored value begins."""
        ...

    @property
    def strategy(self) -> Strategy: ...

    def api_version(self, version: str) -> str: ...


def head_of(kind: str, api_version: str) -> bytes:
    return b'{"kind":"%s","apiVersion":"%s","metadata":{' % (kind.encode(), api_version.encode())


def encode_stored(obj: Json, kind: str, api_version: str) -> bytes:
    """The bytes to store. `obj` may come with or without kind and resourceVersion."""
    metadata = obj["metadata"]
    if "resourceVersion" in metadata:
        metadata = dict(metadata)
        del metadata["resourceVersion"]
    ordered: Json = {"kind": kind, "apiVersion": api_version, "metadata": metadata}
    for name, value in obj.items():
        if name not in ordered:
            ordered[name] = value
    return encode_json(ordered)


def decode_stored(value: bytes, revision: int) -> Json:
    obj: Json = decode_json(value)
    if revision:
        obj["metadata"]["resourceVersion"] = str(revision)
    return obj


class Record:
    """One object at one revision; 0 means that it isn't stored (a dry run).

    What is decoded of it is kept, and shared by all who look at it: nobody may change it.
    """

    __slots__ = ("_managers", "_obj", "_value", "form", "of", "revision")

    def __init__(
        self, of: StoredKind, value: bytes | None, revision: int, obj: Json | None = None, form: Any = None
    ) -> None:
        """Without a value, which is what an object has that isn't stored like this, there must be the object."""
        self.of = of
        self._value = value
        self.revision = revision
        self.form = form
        """The strategy's own form of the object, for its next use."""
        self._obj = obj
        self._managers: Managers | None = None

    @classmethod
    def from_entry(cls, of: StoredKind, entry: Entry) -> Record:
        return cls(of, entry.value, entry.mod_revision)

    @property
    def value(self) -> bytes:
        if self._value is None:
            self._value = encode_stored(self.obj, self.of.kind, self.of.storage_api_version)
        return self._value

    @property
    def obj(self) -> Json:
        """The object in the storage version."""
        if self._obj is None:
            self._obj = decode_stored(self.value, self.revision)
        return self._obj

    @property
    def managers(self) -> Managers:
        if self._managers is None:
            self._managers = read_managers(self.obj) or {}
        return self._managers

    def to_json(self, version: str) -> Json:
        if version == self.of.native_version:
            return self.obj
        return self.of.strategy.encode(self.obj, version)

    def to_own_json(self, version: str) -> Json:
        """The same for someone who may change it."""
        if version == self.of.native_version:
            return decode_stored(self.value, self.revision)
        return self.of.strategy.encode(self.obj, version)

    def to_bytes(self, version: str) -> bytes:
        if version != self.of.native_version:
            return encode_json(self.to_json(version))
        return self.of.head + self._body()

    def to_item(self, version: str) -> bytes:
        """The object within a list, where it doesn't name its kind."""
        if version != self.of.native_version:
            obj = self.to_json(version)
            return encode_json({name: value for name, value in obj.items() if name not in ("kind", "apiVersion")})
        return b'{"metadata":{' + self._body()

    def _body(self) -> bytes:
        body = self.value[len(self.of.head) :]
        return b'"resourceVersion":"%d",%b' % (self.revision, body) if self.revision else body
