"""The registry: reads and writes of single objects, the same for HTTP and for components in this process.

A write reads what is there, lets the kind's strategy judge the new object, and commits it on condition that nothing
changed meanwhile; if something did, it starts over, unless the caller named the revision that it expects.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from dray.api.codec import to_json
from dray.api.errors import BadRequest
from dray.api.features import ALL_GATES, FeatureGates
from dray.api.meta import Json
from dray.api.times import format_time
from dray.apiserver import refusals
from dray.apiserver.admission import Admission, Planned
from dray.apiserver.fieldsets import FieldSet
from dray.apiserver.managed_fields import Managers, Writer, base_managers, track_update, write_managers
from dray.apiserver.namespaces import populate_namespace
from dray.apiserver.options import WriteOptions
from dray.apiserver.record_cache import RecordCache
from dray.apiserver.records import Record, encode_stored
from dray.apiserver.resources import Row
from dray.apiserver.strategies import Live, Verdict, WriteContext
from dray.apiserver.targets import Caller, Target, Written
from dray.apiserver.users import Authorizer, allow_everything
from dray.runtime.clock import Clock, SystemClock
from dray.store.errors import RevisionMismatch
from dray.store.interface import Compare, Delete, Entry, Operation, Put, Store

MAX_OBJECT_BYTES: Final = 1536 * 1024
MAX_ATTEMPTS: Final = 100
"""How often a write starts over because of others before the caller is told."""

_GENERATED_NAMES: Final = 8
_NAME_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_RESET_ON_MAIN: Final[FieldSet] = {"f:status": {}}
_RESET_ON_STATUS: Final[FieldSet] = {"f:metadata": {}, "f:spec": {}}


class Proposal(NamedTuple):
    """What a write wants to store: the strategy's form of it, its metadata as sent, and its managers if it knows."""

    decoded: Any
    metadata: Json
    managers: Managers | None = None


Propose = Callable[[Record], Proposal]
"""From what is stored now, to what should be."""

Judge = Callable[[Any, Record, WriteContext], Verdict]


class Step(NamedTuple):
    """A part of a write. It is judged as if what the part before it left were stored; `judge` replaces the strategy."""

    target: Target
    propose: Propose
    judge: Judge | None = None


class Registry:
    def __init__(
        self,
        store: Store,
        *,
        clock: Clock | None = None,
        gates: FeatureGates = ALL_GATES,
        authorize: Authorizer = allow_everything,
        root_certificate: str = "",
    ) -> None:
        self.store = store
        self.clock: Clock = clock or SystemClock()
        self.gates = gates
        self.authorize = authorize
        self.root_certificate = root_certificate
        """PEM text that every namespace gets, so that pods can trust this server."""
        self.records = RecordCache()
        self.admission = Admission(store, gates, self.clock)
        # Names and UIDs that are generated need no secrecy, only variety.
        self._random = random.Random()
        self._now = ""
        self._next_second = float("-inf")

    def now(self) -> str:
        """The time as objects state it, to the second."""
        elapsed = self.clock.monotonic()
        if elapsed >= self._next_second:
            instant = self.clock.now()
            self._now = format_time(instant.replace(microsecond=0))
            self._next_second = elapsed + 1 - instant.microsecond / 1e6
        return self._now

    async def get(self, target: Target) -> Record:
        refusals.check_name(target.name)
        entry = await self.store.get(target.key)
        if entry is None:
            raise refusals.not_found(target.row, target.name)
        return Record.from_entry(target.row, entry)

    async def create(
        self,
        target: Target,
        body: bytes | Json,
        options: WriteOptions,
        caller: Caller,
        *,
        managers: Managers | None = None,
    ) -> Written:
        """`managers` are those of an apply; else the caller owns all that it sent."""
        now = self.now()
        warnings: list[str] = []
        decoded = self.decode(target, body, now, options, warnings)
        namespace_labels = await self.admission.check_namespace(target.row, target.namespace, target.name)
        for attempt in range(1, _GENERATED_NAMES + 1):
            context = self._context(target, caller, "create", now, namespace_labels)._replace(
                uid=self._make_uid(), name_suffix="".join(self._random.choices(_NAME_LETTERS, k=5))
            )
            verdict = target.row.strategy.create(decoded, context)
            name = verdict.obj["metadata"].get("name", "")
            self._raise_errors(target, verdict)
            obj = self._created(target, verdict, context, options, caller, managers)
            self.admission.check(target.row, "create", caller.user, target.subresource, obj, None)
            try:
                record = await self._commit_new(target, obj, options, verdict.form)
            except RevisionMismatch:
                generated = bool(verdict.obj["metadata"].get("generateName")) and name.endswith(context.name_suffix)
                if generated and attempt < _GENERATED_NAMES:
                    continue
                raise refusals.already_exists(target.row, name, generated=generated) from None
            if target.row.kind == "Namespace" and not options.dry_run:
                await populate_namespace(self, name)
            return Written(record, [*warnings, *verdict.warnings], created=True)
        raise AssertionError("the last attempt returns or raises")

    def _created(
        self,
        target: Target,
        verdict: Verdict,
        context: WriteContext,
        options: WriteOptions,
        caller: Caller,
        managers: Managers | None,
    ) -> Json:
        obj = verdict.obj
        metadata = obj["metadata"]
        if metadata.pop("resourceVersion", ""):
            raise BadRequest("resourceVersion should not be set on objects to be created")
        obj["metadata"] = _in_order(metadata, context.uid, context.now)
        if managers is None:
            self._track(target, None, obj, base_managers(metadata, {}), options, caller, verdict.asked)
        else:
            _set_managers(obj, managers)
        return obj

    async def _commit_new(self, target: Target, obj: Json, options: WriteOptions, form: Any) -> Record:
        """Raises RevisionMismatch if the name is taken."""
        row = target.row
        key = row.key(target.namespace, obj["metadata"]["name"])
        value = self._encode(row, obj)
        if options.dry_run:
            existing = await self.store.get(key)
            if existing is not None:
                raise RevisionMismatch(key, 0, existing)
        change = Planned(row, target.namespace, Compare(key, 0), Put(key, value), obj, None)
        revision = await self.admission.commit(change, dry_run=options.dry_run)
        if revision:
            obj["metadata"]["resourceVersion"] = str(revision)
        return self.records.keep(key, Record(row, value, revision, obj, form))

    async def update(self, target: Target, body: bytes | Json, options: WriteOptions, caller: Caller) -> Written:
        now = self.now()
        warnings: list[str] = []
        decoded = self.decode(target, body, now, options, warnings)
        metadata = _sent_metadata(decoded, body)
        _check_names(target, metadata)
        entry = await self.store.get(target.key)
        if entry is None and target.row.strategy.create_on_update and not target.subresource:
            if metadata.get("resourceVersion"):
                raise refusals.not_found(target.row, target.name)
            return await self.create(target, body, options, caller)
        proposal = Proposal(decoded, metadata)
        steps = (Step(target, lambda old: proposal),)
        written = await self.modify(steps, options, caller, verb="update", entry=entry)
        return written._replace(warnings=[*warnings, *written.warnings])

    async def modify(
        self, steps: Sequence[Step], options: WriteOptions, caller: Caller, *, verb: str, entry: Entry | None = None
    ) -> Written:
        """Replace a stored object by what the steps make of it, in one write. `entry` is what is stored, if known."""
        target = steps[0].target
        row = target.row
        if entry is None:
            entry = await self.store.get(target.key)
        now = self.now()
        for _ in range(MAX_ATTEMPTS):
            if entry is None:
                raise refusals.not_found(row, target.name)
            old = self.records.get(row, entry)
            labels = await self.admission.namespace_labels(row, target.namespace)
            context = self._context(target, caller, verb, now, labels)
            new, warnings, is_conditional = old, list[str](), False
            for step in steps:
                proposal = step.propose(new)
                is_conditional |= bool(proposal.metadata.get("resourceVersion"))
                self._check_preconditions(target, proposal.metadata, old)
                new, found = self._carry_out(step, proposal, new, context, options, caller)
                warnings += found
            if new.obj == old.obj:
                return Written(old, warnings)
            try:
                record = await self._commit_change(target, new.obj, old, options, new.form)
            except RevisionMismatch as error:
                if is_conditional:
                    raise refusals.conflict(row, target.name) from None
                entry = error.current
                continue
            return Written(record, warnings)
        raise refusals.conflict(row, target.name)

    def _carry_out(
        self,
        step: Step,
        proposal: Proposal,
        old: Record,
        context: WriteContext,
        options: WriteOptions,
        caller: Caller,
    ) -> tuple[Record, Sequence[str]]:
        """What a step makes of the object, before it is stored, and warnings."""
        target = step.target
        strategy = target.row.strategy
        judge: Judge = step.judge or (strategy.update_status if target.subresource == "status" else strategy.update)
        verdict = judge(proposal.decoded, old, context)
        self._raise_errors(target, verdict)
        obj = self._updated(target, verdict, proposal, old, options, caller)
        self.admission.check(target.row, "update", caller.user, target.subresource, obj, old.obj)
        return Record(target.row, None, old.revision, obj, verdict.form), verdict.warnings

    def _updated(
        self, target: Target, verdict: Verdict, proposal: Proposal, old: Record, options: WriteOptions, caller: Caller
    ) -> Json:
        obj = verdict.obj
        metadata = obj["metadata"] = _in_order(obj["metadata"], "", "")
        metadata["resourceVersion"] = str(old.revision)
        managers = proposal.managers
        if managers is None:
            base = base_managers(proposal.metadata, old.managers)
            self._track(target, old.obj, obj, base, options, caller)
        else:
            _set_managers(obj, managers)
        return obj

    async def _commit_change(self, target: Target, obj: Json, old: Record, options: WriteOptions, form: Any) -> Record:
        """Stores the object, or deletes it if that was all that its deletion waited for."""
        row, key = target.row, target.key
        value = self._encode(row, obj)
        gone = is_finished(row, obj)
        change: Operation = Delete(key) if gone else Put(key, value)
        planned = Planned(row, target.namespace, Compare(key, old.revision), change, None if gone else obj, old.obj)
        revision = await self.admission.commit(planned, dry_run=options.dry_run)
        if not revision:
            return Record(row, value, old.revision, obj)
        obj["metadata"]["resourceVersion"] = str(revision)
        return self.records.keep(key, Record(row, value, revision, obj, form))

    def decode(
        self,
        target: Target,
        body: bytes | Json,
        now: str,
        options: WriteOptions,
        warnings: list[str],
        live: Live | None = None,
    ) -> Any:
        """The strategy's form of a body, with the caller's idea of what to do about unknown fields."""
        problems: list[str] | None = None if options.field_validation == "Ignore" else []
        decoded = target.row.strategy.decode(body, target.version, now, problems, live)
        if problems and options.field_validation == "Strict":
            kind = target.row.kind
            text = f'{kind} in version "{target.version}" cannot be handled as a {kind}: strict decoding error: '
            raise BadRequest(text + ", ".join(problems))
        warnings.extend(problems or ())
        return decoded

    def writer(self, target: Target, options: WriteOptions, caller: Caller) -> Writer:
        row = target.row
        name = options.field_manager or caller.agent
        subresource = target.subresource if target.subresource == "status" else ""
        return Writer(name, target.api_version, subresource, self.now(), row.group, row.kind)

    def reset_fields(self, target: Target) -> FieldSet:
        if target.subresource == "status":
            return _RESET_ON_STATUS
        return _RESET_ON_MAIN if target.row.strategy.has_status else {}

    def convert(self, target: Target) -> Callable[[Json, str], Json | None]:
        """Turns JSON of the target's version into another version of its kind."""

        def to_version(obj: Json, api_version: str) -> Json | None:
            group, _, version = api_version.rpartition("/")
            if group != target.row.group or version not in target.row.versions:
                return None
            return obj if version == target.version else target.row.strategy.encode(obj, version)

        return to_version

    def _track(
        self,
        target: Target,
        live: Json | None,
        obj: Json,
        managers: Managers,
        options: WriteOptions,
        caller: Caller,
        asked: Json | None = None,
    ) -> None:
        """Write into `obj` who set what; `asked` is the part of it that is the caller's doing, if not all."""
        if not target.row.tracks_fields or not (managers or caller.tracked):
            obj["metadata"].pop("managedFields", None)
            return
        writer = self.writer(target, options, caller)
        before = None if live is None else self.in_version(target, live)
        after = self.in_version(target, obj if asked is None else asked)
        reset = self.reset_fields(target)
        _set_managers(obj, track_update(before, after, managers, writer, self.convert(target), reset=reset))

    def in_version(self, target: Target, obj: Json) -> Json:
        """A stored object as the request's version has it."""
        if target.version == target.row.native_version:
            return obj
        return target.row.strategy.encode(obj, target.version)

    def _context(
        self, target: Target, caller: Caller, verb: str, now: str, namespace_labels: dict[str, str]
    ) -> WriteContext:
        return WriteContext(
            version=target.version,
            verb=verb,
            now=now,
            namespace=target.namespace,
            namespace_labels=namespace_labels,
            user=caller.user,
            authorize=self.authorize,
            gates=self.gates,
        )

    def _make_uid(self) -> str:
        """Unique, not secret: one system call less per object than `uuid.uuid4`, which is most of its cost."""
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def _raise_errors(self, target: Target, verdict: Verdict) -> None:
        if verdict.errors:
            kind, name = verdict.called or target.row.kind, verdict.obj["metadata"].get("name", "")
            raise refusals.invalid_object(kind, target.row.group, name, verdict.errors)

    def _encode(self, row: Row, obj: Json) -> bytes:
        value = encode_stored(obj, row.kind, row.storage_api_version)
        if len(value) > MAX_OBJECT_BYTES:
            raise refusals.too_large(len(value), MAX_OBJECT_BYTES)
        return value

    def _check_preconditions(self, target: Target, metadata: Json, old: Record) -> None:
        wanted = metadata.get("resourceVersion")
        if wanted and wanted != str(old.revision):
            _read_revision(wanted)
            raise refusals.conflict(target.row, target.name)
        uid, actual = metadata.get("uid"), old.obj["metadata"].get("uid", "")
        if uid and uid != actual:
            raise refusals.uid_changed(target.row, target.namespace, target.name, uid, actual)


def is_finished(row: Row, obj: Json) -> bool:
    """Whether an object that is being deleted has nothing left to wait for."""
    metadata = obj["metadata"]
    if not metadata.get("deletionTimestamp") or metadata.get("finalizers"):
        return False
    if row.kind == "Namespace" and obj["spec"].get("finalizers"):
        return False
    return not metadata.get("deletionGracePeriodSeconds")


def _read_revision(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise refusals.invalid_revision(text)
    return int(text)


def _sent_metadata(decoded: Any, body: bytes | Json) -> Json:
    """Name, namespace, uid, revision and managers as the body gives them."""
    if isinstance(decoded, dict):
        metadata: Json = decoded["metadata"]
        return metadata
    if isinstance(body, dict):
        return body.get("metadata") or {}
    typed: Json = to_json(decoded.metadata)
    return typed


def _check_names(target: Target, metadata: Json) -> None:
    name, namespace = metadata.get("name", ""), metadata.get("namespace", "")
    if not name:
        raise BadRequest(
            f"the name of the object ({target.name} based on URL) was undeterminable: name must be provided"
        )
    if name != target.name:
        raise BadRequest(f"the name of the object ({name}) does not match the name on the URL ({target.name})")
    if target.namespace and namespace and namespace != target.namespace:
        raise BadRequest(
            f"the namespace of the object ({namespace}) does not match the namespace on the URL ({target.namespace})"
        )


def _in_order(metadata: Json, uid: str, created: str) -> Json:
    """Identity first, as people expect it, then the rest."""
    ordered: Json = {}
    for name in ("name", "generateName", "namespace", "uid", "generation", "creationTimestamp"):
        if name == "uid" and uid:
            ordered[name] = uid
        elif name == "creationTimestamp" and created:
            ordered[name] = created
        elif metadata.get(name):
            ordered[name] = metadata[name]
    for name, value in metadata.items():
        if name not in ordered and name != "resourceVersion" and value not in (None, [], {}):
            ordered[name] = value
    return ordered


def _set_managers(obj: Json, managers: Managers) -> None:
    obj["metadata"].pop("managedFields", None)
    if managers:
        obj["metadata"]["managedFields"] = write_managers(managers)
