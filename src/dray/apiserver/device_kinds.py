"""The kinds of resource.k8s.io: typed while they are judged, with the rules of `dray.validation`.

The typed object stays with the stored record, so that the next write need not decode it again; and what a patch leaves
alone is neither decoded nor written anew.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from dray.api.codec import DecodeError, convert_part, decode_object, decode_plain, encode_as, to_json
from dray.api.defaults import default_status
from dray.api.errors import BadRequest
from dray.api.kinds import HUB_TYPES
from dray.api.meta import RESOURCE_GROUP, Json, ObjectMeta
from dray.api.strict import find_strict_errors
from dray.apiserver.strategies import Live, Old, Verdict, WriteContext, generate_name
from dray.apiserver.users import Attributes
from dray.validation.outcome import Outcome, RequestContext
from dray.validation.statusauthz import Access, Decision, Requester
from dray.validation.strategy import create, update, update_status

_WITH_STATUS: Final = ("ResourceClaim", "DeviceTaintRule")
_SPEC_AND_STATUS: Final = frozenset(("spec", "status"))
_SPEC_ONLY: Final = frozenset(("spec",))
_HUB_API_VERSION: Final = f"{RESOURCE_GROUP}/v1"
_SHAPED_LIKE_HUB: Final = ("v1", "v1beta2")

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class DeviceStrategy:
    kind: str
    create_on_update: bool = False

    def returns_deleted(self, version: str) -> bool:
        return self.kind != "DeviceTaintRule" or version != "v1"

    @property
    def has_status(self) -> bool:
        return self.kind in _WITH_STATUS

    @property
    def _parts(self) -> frozenset[str]:
        return _SPEC_AND_STATUS if self.has_status else _SPEC_ONLY

    def decode(
        self, body: bytes | Json, version: str, now: str, problems: list[str] | None, live: Live | None = None
    ) -> Any:
        if live is not None and isinstance(body, dict) and version in _SHAPED_LIKE_HUB:
            return self._decode_changes(body, version, now, problems, live)
        if isinstance(body, dict):
            body = _without_managers(body)
            if problems is None and body.get("kind") == self.kind and body.get("apiVersion") == _HUB_API_VERSION:
                try:
                    return decode_plain(HUB_TYPES[self.kind], body, now=now)
                except DecodeError:  # for the exact decoder, which says what is wrong
                    pass
            body = _encode(body)
        return self._decode_bytes(self._with_type(body, version), version, now, problems)

    def _decode_bytes(self, data: bytes, version: str, now: str, problems: list[str] | None) -> Any:
        try:
            decoded = decode_object(data, now=now)
            if problems is not None:
                problems.extend(find_strict_errors(data))
        except DecodeError as error:
            text = f'{self.kind} in version "{version}" cannot be handled as a {self.kind}: {error}'
            raise BadRequest(text) from error
        return decoded

    def _decode_changes(self, body: Json, version: str, now: str, problems: list[str] | None, live: Live) -> Any:
        """What the body shares with the live object is taken from its typed form."""
        body, old = _without_managers(body), _typed(live.record)
        given = self._parts & body.keys()
        same = {name for name in given if body[name] is live.obj.get(name)}
        if problems is None and "spec" in same and given == self._parts and "metadata" in body:
            try:
                return _patched(old, body, given - same)
            except msgspec.ValidationError:  # for the exact decoder, which says what is wrong
                pass
        changed = {name: value for name, value in body.items() if name not in same}
        decoded = self._decode_bytes(_encode(changed), version, now, problems)
        return replace(decoded, **{name: getattr(old, name) for name in same})

    def _with_type(self, data: bytes, version: str) -> bytes:
        """A body that doesn't name its kind is of the kind that the path names."""
        if b'"kind"' in data and b'"apiVersion"' in data:
            return data
        obj: Json = _decode(data)
        return _encode({**obj, "kind": self.kind, "apiVersion": f"{RESOURCE_GROUP}/{version}"})

    def encode(self, obj: Json, version: str) -> Json:
        encoded: Json = _decode(encode_as(decode_object(_encode(obj)), version))
        return encoded

    def zero(self, version: str) -> Json:
        empty: Json = _decode(encode_as(HUB_TYPES[self.kind](), version))
        return empty

    def create(self, decoded: Any, context: WriteContext) -> Verdict:
        metadata = decoded.metadata
        if not metadata.name and metadata.generate_name:
            name = generate_name(metadata.generate_name, context.name_suffix)
            decoded = replace(decoded, metadata=replace(metadata, name=name))
        outcome = create(decoded, self._context(context))
        return Verdict(to_json(outcome.object), outcome.errors, outcome.warnings, form=outcome.object)

    def update(self, decoded: Any, old: Old, context: WriteContext) -> Verdict:
        return self._verdict(update(decoded, _typed(old), self._context(context)), old)

    def update_status(self, decoded: Any, old: Old, context: WriteContext) -> Verdict:
        return self._verdict(update_status(decoded, _typed(old), self._context(context)), old)

    def _verdict(self, outcome: Outcome[Any], old: Old) -> Verdict:
        new, before = outcome.object, _typed(old)
        obj: Json = {"kind": self.kind, "apiVersion": _HUB_API_VERSION, "metadata": to_json(new.metadata)}
        for name in ("spec", "status") if self.has_status else ("spec",):
            part, stored = getattr(new, name), getattr(before, name)
            obj[name] = old.obj[name] if part is stored and name in old.obj else to_json(part)
        return Verdict(obj, outcome.errors, outcome.warnings, form=new, called=outcome.kind)

    def _context(self, context: WriteContext) -> RequestContext:
        def authorize(access: Access) -> Decision:
            attributes = Attributes(
                user=context.user,
                verb=access.verb,
                group=access.group,
                version="*",
                resource=access.resource,
                subresource=access.subresource,
                namespace=access.namespace,
                name=access.name,
            )
            return Decision(*context.authorize(attributes))

        return RequestContext(
            now=context.now,
            gates=context.gates,
            version=context.version,
            namespace=context.namespace,
            namespace_labels=context.namespace_labels,
            requester=Requester(authorize, context.user.name, context.user.extra, context.verb),
        )


def _typed(old: Old) -> Any:
    """The typed form of what is stored, with the metadata that it was stored with."""
    form, revision = old.form, str(old.revision)
    if form is None:
        form = decode_object(_encode(_without_managers(old.obj)))
    elif not form.metadata.uid:  # it was made by a create, which gave it an identity afterwards
        metadata = _without_managers(old.obj)["metadata"]
        form = replace(form, metadata=msgspec.convert(metadata, ObjectMeta))
    elif form.metadata.resource_version != revision:
        form = replace(form, metadata=replace(form.metadata, resource_version=revision))
    old.form = form
    return form


def _patched(old: Any, body: Json, changed: frozenset[str]) -> Any:
    """The stored object with other metadata, and another status if that changed. Raises ValidationError."""
    metadata = msgspec.convert(body["metadata"], ObjectMeta)
    if "status" not in changed:
        return replace(old, metadata=metadata)
    status = convert_part(body["status"], type(old.status))
    return replace(old, metadata=metadata, status=default_status(status))


def _without_managers(obj: Json) -> Json:
    """Who manages which field is no affair of the rules, and large."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return obj
    return {**obj, "metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}


@functools.cache
def device_strategy(kind: str) -> DeviceStrategy:
    return DeviceStrategy(kind)
