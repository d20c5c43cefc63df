"""Events: one storage, two API groups. core/v1 is the stored form; events.k8s.io names the same fields anew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from dray.api.errors import BadRequest
from dray.api.meta import Json
from dray.apiserver.fitting import DoesNotFit, fit_object
from dray.apiserver.managed_fields import zero_value
from dray.apiserver.schemas import type_of
from dray.apiserver.strategies import Carried, Live, Old, Verdict, WriteContext
from dray.validation.fields import Errors, Path, invalid

EVENTS_GROUP: Final = "events.k8s.io"
_NEW_NAMES: Final = {
    "involvedObject": "regarding",
    "message": "note",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "source": "deprecatedSource",
    "reportingComponent": "reportingController",
}
_OLD_NAMES: Final = {new: old for old, new in _NEW_NAMES.items()}


def _default_event(event: Json) -> None:
    event.setdefault("involvedObject", {})
    event.setdefault("source", {})
    event.setdefault("reportingComponent", "")
    event.setdefault("reportingInstance", "")
    for field in ("firstTimestamp", "lastTimestamp", "eventTime"):
        event.setdefault(field, None)


def _check_event(event: Json, errors: Errors) -> None:
    namespace = event["metadata"].get("namespace", "")
    about = event["involvedObject"].get("namespace") or ""
    # Events about cluster-scoped objects live in the default namespace, or wherever the reporter says.
    if about and about != namespace:
        place = Path("involvedObject").child("namespace")
        errors.append(invalid(place, about, "does not match event.namespace"))
    if len((event.get("message") or "").encode()) > 1024 * 16:
        errors.append(invalid(Path("message"), "", "can have at most 16384 characters"))


EVENT_STRATEGY: Final = Carried("", "Event", create_on_update=True, default=_default_event, check=_check_event)


def rename_fields(event: Json, names: dict[str, str], api_version: str) -> Json:
    renamed = {names.get(field, field): value for field, value in event.items()}
    renamed["apiVersion"] = api_version
    return renamed


@dataclass(frozen=True, slots=True)
class NewEventStrategy:
    """The events.k8s.io view: decodes into, and encodes from, the stored core form."""

    create_on_update: bool = True
    has_status: bool = False

    def decode(
        self, body: bytes | Json, version: str, now: str, problems: list[str] | None, live: Live | None = None
    ) -> Json:
        raw = msgspec.json.decode(body) if isinstance(body, bytes) else body
        unknown: list[str] = []
        try:
            fitted = fit_object(raw, type_of(EVENTS_GROUP, version, "Event"), unknown)
        except DoesNotFit as error:
            raise BadRequest(f'Event in version "{version}" cannot be handled as a Event: {error}') from error
        if problems is not None:
            problems.extend(f'unknown field "{field}"' for field in unknown)
        event = rename_fields(fitted, _OLD_NAMES, "v1")
        event["kind"] = "Event"
        event.setdefault("metadata", {})
        _default_event(event)
        return event

    def returns_deleted(self, version: str) -> bool:
        return False

    def encode(self, obj: Json, version: str) -> Json:
        event = rename_fields(obj, _NEW_NAMES, f"{EVENTS_GROUP}/{version}")
        return {name: value for name, value in event.items() if value not in (None, "", {}) or name == "eventTime"}

    def zero(self, version: str) -> Json:
        return zero_value(type_of(EVENTS_GROUP, version, "Event"))

    def create(self, decoded: Json, context: WriteContext) -> Verdict:
        return EVENT_STRATEGY.create(decoded, context)

    def update(self, decoded: Json, old: Old, context: WriteContext) -> Verdict:
        return EVENT_STRATEGY.update(decoded, old, context)

    def update_status(self, decoded: Json, old: Old, context: WriteContext) -> Verdict:
        raise AssertionError("events have no status")


NEW_EVENT_STRATEGY: Final = NewEventStrategy()
