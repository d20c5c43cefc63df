"""Events: what components told about objects."""

from __future__ import annotations

from dray.api.meta import ApiStruct, Json
from dray.api.views import ViewMeta, view_as


class ObjectReference(ApiStruct, frozen=True):
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""


class EventSource(ApiStruct, frozen=True):
    component: str = ""
    host: str = ""


class EventSeries(ApiStruct, frozen=True):
    count: int = 0
    last_observed_time: str | None = None


class Event(ApiStruct, frozen=True):
    metadata: ViewMeta = ViewMeta()
    involved_object: ObjectReference = ObjectReference()
    related: ObjectReference | None = None
    type: str = ""
    reason: str = ""
    message: str = ""
    action: str = ""
    count: int = 0
    source: EventSource = EventSource()
    reporting_component: str = ""
    reporting_instance: str = ""
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    event_time: str | None = None
    series: EventSeries | None = None


def view_event(obj: Json) -> Event:
    """Raises InvalidView."""
    return view_as(obj, Event)
