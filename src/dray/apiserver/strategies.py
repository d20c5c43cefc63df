"""What is particular to a kind: how a body becomes an object, and what a create or an update may do with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import msgspec

from dray.api.errors import BadRequest
from dray.api.features import ALL_GATES, FeatureGates
from dray.api.meta import Json, ObjectMeta
from dray.apiserver.duplicates import find_duplicates
from dray.apiserver.fitting import DoesNotFit, fit_object
from dray.apiserver.managed_fields import zero_value
from dray.apiserver.schemas import type_of
from dray.apiserver.users import ADMIN, Authorizer, UserInfo, allow_everything
from dray.validation.fields import METADATA, Errors, FieldError
from dray.validation.metadata import NameRule, check_object_meta, check_object_meta_update, subdomain_name

_NAMESPACES_DIFFER = "the namespace of the provided object does not match the namespace sent on the request"
_LONGEST_GENERATED = 63 - 5


class WriteContext(NamedTuple):
    """The circumstances of a write."""

    version: str
    """The API version of the request."""
    verb: str
    now: str
    uid: str = ""
    """Of the object that is created."""
    name_suffix: str = ""
    """What is appended to `generateName`."""
    namespace: str = ""
    namespace_labels: Mapping[str, str] = MappingProxyType({})
    user: UserInfo = ADMIN
    authorize: Authorizer = allow_everything
    gates: FeatureGates = ALL_GATES


class Verdict(NamedTuple):
    """What would be stored, as JSON of the storage version, and why it may not be."""

    obj: Json
    errors: Sequence[FieldError] = ()
    warnings: Sequence[str] = ()
    asked: Json | None = None
    """What the caller asked for, if the server added to it: that part becomes the caller's."""
    form: Any = None
    """The strategy's own form of the object, to be kept with what is stored."""
    called: str = ""
    """What the message of a refusal calls the object, if not by its kind."""


class Old(Protocol):
    """What is stored now."""

    form: Any
    """The strategy's own form of it, if it has been made already."""

    @property
    def obj(self) -> Json:
        """Shared: never changed."""
        ...

    @property
    def value(self) -> bytes: ...

    @property
    def revision(self) -> int: ...


class Live(NamedTuple):
    """What a patch was applied to: the body shares with `obj` whatever the patch left alone."""

    record: Old
    obj: Json
    """The record's object in the version of the request."""


class Strategy(Protocol):
    """`decode` gives the strategy's own form of an object, which nobody else looks into."""

    def returns_deleted(self, version: str) -> bool:
        """Whether a delete answers with the object; else with a Status."""
        ...

    @property
    def create_on_update(self) -> bool: ...

    @property
    def has_status(self) -> bool: ...

    def decode(
        self, body: bytes | Json, version: str, now: str, problems: list[str] | None, live: Live | None = None
    ) -> Any:
        """The object in a body of `version`, defaulted. Raises BadRequest.

        What strict validation objects to, such as unknown fields, is appended to `problems`, if it is given.
        """
        ...

    def encode(self, obj: Json, version: str) -> Json:
        """A stored object in another version than the stored one."""
        ...

    def zero(self, version: str) -> Json:
        """An empty object, as bookmarks carry it."""
        ...

    def create(self, decoded: Any, context: WriteContext) -> Verdict: ...

    def update(self, decoded: Any, old: Old, context: WriteContext) -> Verdict: ...

    def update_status(self, decoded: Any, old: Old, context: WriteContext) -> Verdict: ...


Default = Callable[[Json], None]
Prepare = Callable[[Json, WriteContext], None]
PrepareUpdate = Callable[[Json, Json, WriteContext], None]
Check = Callable[[Json, Errors], None]
CheckUpdate = Callable[[Json, Json, Errors], None]


def _nothing(*_: object) -> None:
    pass


def read_meta(obj: Json) -> ObjectMeta:
    """The metadata to judge; who manages which field is not judged."""
    metadata = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    return msgspec.convert(metadata, ObjectMeta)


def generate_name(prefix: str, suffix: str) -> str:
    return prefix[:_LONGEST_GENERATED] + suffix


@dataclass(frozen=True, slots=True)
class Carried:
    """The strategy of a kind that the server keeps as JSON, described by a few functions.

    These may change the object that they get, which is fresh; the old one is shared.
    """

    group: str
    kind: str
    version: str = "v1"
    namespaced: bool = True
    name_rule: NameRule = subdomain_name
    has_status: bool = False
    keeps_status_on_create: bool = False
    counts_generations: bool = False
    shows_deleted: bool = False
    create_on_update: bool = False
    default: Default = _nothing
    """Fills in what the API says of an absent field, in every object that is read from a request."""
    prepare_create: Prepare = _nothing
    prepare_update: PrepareUpdate = _nothing
    prepare_status: PrepareUpdate = _nothing
    check: Check = _nothing
    check_update: CheckUpdate = _nothing
    check_status: CheckUpdate = _nothing

    def decode(
        self, body: bytes | Json, version: str, now: str, problems: list[str] | None, live: Live | None = None
    ) -> Json:
        raw = msgspec.json.decode(body) if isinstance(body, bytes) else body
        unknown: list[str] = []
        fitted = None if live is None else live.obj
        try:
            obj = fit_object(raw, type_of(self.group, self.version, self.kind), unknown, fitted)
        except DoesNotFit as error:
            text = f'{self.kind} in version "{version}" cannot be handled as a {self.kind}: {error}'
            raise BadRequest(text) from error
        if problems is not None:
            problems.extend(f'unknown field "{place}"' for place in unknown)
            if isinstance(body, bytes):
                problems.extend(f'duplicate field "{place}"' for place in find_duplicates(body))
        if not obj.get("metadata"):
            obj["metadata"] = {}
        obj["kind"], obj["apiVersion"] = self.kind, f"{self.group}/{self.version}" if self.group else self.version
        if fitted is None or "spec" not in obj or obj["spec"] is not fitted.get("spec"):
            self.default(obj)
        return obj

    def returns_deleted(self, version: str) -> bool:
        return self.shows_deleted

    def encode(self, obj: Json, version: str) -> Json:
        raise AssertionError(f"{self.kind} has one version only, not {version}")

    def zero(self, version: str) -> Json:
        return zero_value(type_of(self.group, self.version, self.kind))

    def create(self, decoded: Json, context: WriteContext) -> Verdict:
        obj = {**decoded, "metadata": dict(decoded["metadata"])}
        metadata = obj["metadata"]
        self._resolve_namespace(metadata, context)
        for name in ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
            metadata.pop(name, None)
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = generate_name(metadata["generateName"], context.name_suffix)
        if self.has_status and not self.keeps_status_on_create:
            obj["status"] = {}
        if self.counts_generations:
            metadata["generation"] = 1
        self.prepare_create(obj, context)
        errors: Errors = []
        check_object_meta(read_meta(obj), METADATA, errors, namespaced=self.namespaced, name_rule=self.name_rule)
        self.check(obj, errors)
        return Verdict(obj, errors, asked=decoded)

    def update(self, decoded: Json, old: Old, context: WriteContext) -> Verdict:
        before = old.obj
        obj = {**decoded, "metadata": self._kept_metadata(decoded, before, context)}
        if self.has_status:
            obj["status"] = before.get("status", {})
        self.prepare_update(obj, before, context)
        if self.counts_generations and obj.get("spec") != before.get("spec"):
            obj["metadata"]["generation"] = before["metadata"].get("generation", 0) + 1
        errors: Errors = []
        check_object_meta_update(read_meta(obj), read_meta(before), METADATA, errors)
        if "spec" not in obj or obj["spec"] is not before.get("spec"):
            self.check(obj, errors)
            self.check_update(obj, before, errors)
        return Verdict(obj, errors)

    def update_status(self, decoded: Json, old: Old, context: WriteContext) -> Verdict:
        before = old.obj
        metadata = self._kept_metadata(decoded, before, context)
        # A status update may touch labels and annotations; the rest of the metadata stays as it is.
        for name in ("ownerReferences", "finalizers"):
            metadata.pop(name, None)
            if name in before["metadata"]:
                metadata[name] = before["metadata"][name]
        obj = {**before, "metadata": metadata, "status": dict(decoded.get("status") or {})}
        self.prepare_status(obj, before, context)
        errors: Errors = []
        check_object_meta_update(read_meta(obj), read_meta(before), METADATA, errors)
        self.check_status(obj, before, errors)
        return Verdict(obj, errors)

    def _resolve_namespace(self, metadata: Json, context: WriteContext) -> None:
        if metadata.get("namespace", "") == context.namespace:
            return
        if metadata.get("namespace") and context.namespace:
            raise BadRequest(_NAMESPACES_DIFFER)
        metadata.pop("namespace", None)
        if context.namespace:
            metadata["namespace"] = context.namespace

    def _kept_metadata(self, decoded: Json, before: Json, context: WriteContext) -> Json:
        """The metadata of an update, with what is the server's to set taken from the stored object."""
        metadata = dict(decoded["metadata"])
        self._resolve_namespace(metadata, context)
        old = before["metadata"]
        metadata["resourceVersion"] = metadata.get("resourceVersion") or old.get("resourceVersion", "")
        metadata["uid"] = metadata.get("uid") or old.get("uid", "")
        for name in ("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
            metadata.pop(name, None)
            if name in old:
                metadata[name] = old[name]
        return metadata
