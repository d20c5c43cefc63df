"""The kinds of resource.k8s.io: typed while they are judged, with the rules of `dray.validation`."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Final

from msgspec.structs import replace

from dray.api.codec import DecodeError, decode_object, encode_as, to_json
from dray.api.errors import BadRequest
from dray.api.kinds import HUB_TYPES
from dray.api.meta import RESOURCE_GROUP, Json
from dray.api.strict import find_strict_errors
from dray.apiserver.records import decode_json, encode_json
from dray.apiserver.strategies import Old, Verdict, WriteContext, generate_name
from dray.apiserver.users import Attributes
from dray.validation.outcome import Outcome, RequestContext
from dray.validation.statusauthz import Access, Decision, Requester
from dray.validation.strategy import create, update, update_status

_WITH_STATUS: Final = ("ResourceClaim", "DeviceTaintRule")


@dataclass(frozen=True, slots=True)
class DeviceStrategy:
    kind: str
    create_on_update: bool = False

    @property
    def returns_deleted(self) -> bool:
        return self.kind != "DeviceTaintRule"

    @property
    def has_status(self) -> bool:
        return self.kind in _WITH_STATUS

    def decode(self, body: bytes | Json, version: str, now: str, problems: list[str] | None) -> Any:
        data = self._with_type(body if isinstance(body, bytes) else encode_json(body), version)
        try:
            decoded = decode_object(data, now=now)
            if problems is not None:
                problems.extend(find_strict_errors(data))
        except DecodeError as error:
            text = f'{self.kind} in version "{version}" cannot be handled as a {self.kind}: {error}'
            raise BadRequest(text) from error
        return decoded

    def _with_type(self, data: bytes, version: str) -> bytes:
        """A body that doesn't name its kind is of the kind that the path names."""
        if b'"kind"' in data and b'"apiVersion"' in data:
            return data
        obj: Json = decode_json(data)
        return encode_json({**obj, "kind": self.kind, "apiVersion": f"{RESOURCE_GROUP}/{version}"})

    def encode(self, obj: Json, version: str) -> Json:
        encoded: Json = decode_json(encode_as(decode_object(encode_json(obj)), version))
        return encoded

    def zero(self, version: str) -> Json:
        empty: Json = decode_json(encode_as(HUB_TYPES[self.kind](), version))
        return empty

    def create(self, decoded: Any, context: WriteContext) -> Verdict:
        metadata = decoded.metadata
        if not metadata.name and metadata.generate_name:
            name = generate_name(metadata.generate_name, context.name_suffix)
            decoded = replace(decoded, metadata=replace(metadata, name=name))
        return _verdict(create(decoded, self._context(context)))

    def update(self, decoded: Any, old: Old, context: WriteContext) -> Verdict:
        return _verdict(update(decoded, _typed(old), self._context(context)))

    def update_status(self, decoded: Any, old: Old, context: WriteContext) -> Verdict:
        return _verdict(update_status(decoded, _typed(old), self._context(context)))

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
    obj = decode_object(old.value)
    return replace(obj, metadata=replace(obj.metadata, resource_version=str(old.revision)))


def _verdict(outcome: Outcome[Any]) -> Verdict:
    return Verdict(to_json(outcome.object), outcome.errors, outcome.warnings)


@functools.cache
def device_strategy(kind: str) -> DeviceStrategy:
    return DeviceStrategy(kind)
