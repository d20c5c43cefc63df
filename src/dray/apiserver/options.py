"""The options of a request: what its query, or the body of a delete, says beside the object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from dray.api.errors import BadRequest
from dray.api.fieldselectors import FieldSelector, InvalidFieldSelector, check_field_selector, parse_field_selector
from dray.api.label_parser import parse_label_selector
from dray.api.labels import InvalidSelector, Selector
from dray.api.meta import Json
from dray.api.quoting import quote
from dray.apiserver.managed_fields import MAX_MANAGER_LENGTH
from dray.apiserver.refusals import invalid_options
from dray.apiserver.requests import Query
from dray.apiserver.resources import Row
from dray.validation.fields import Errors, ErrorType, FieldError, Path, byte_length, forbidden, required, too_long

_VALIDATIONS: Final = ("", "Ignore", "Strict", "Warn")
_POLICIES: Final = ("Background", "Foreground", "Orphan")
EVERY_FIELD: Final = FieldSelector()
_MATCHES: Final = ("Exact", "NotOlderThan")


class WriteOptions(NamedTuple):
    dry_run: bool = False
    field_manager: str = ""
    field_validation: str = "Warn"
    force: bool = False


class DeleteOptions(NamedTuple):
    dry_run: bool = False
    grace_period_seconds: int | None = None
    uid: str | None = None
    resource_version: str | None = None
    propagation_policy: str = ""
    orphan_dependents: bool | None = None


@dataclass(frozen=True, slots=True)
class ListOptions:
    """`limit` 0 means all; `resource_version` is empty for "the latest"."""

    labels: Selector | None = None
    fields: FieldSelector = EVERY_FIELD
    limit: int = 0
    continue_token: str = ""
    resource_version: str = ""
    match: str = ""
    allow_bookmarks: bool = False
    send_initial_events: bool = False
    timeout_seconds: int | None = None

    @property
    def selects(self) -> bool:
        return self.labels is not None or bool(self.fields.requirements)


def read_write_options(query: Query, kind: str, *, apply: bool = False) -> WriteOptions:
    """`kind` names the options in messages: CreateOptions, UpdateOptions or PatchOptions. Raises Invalid."""
    errors: Errors = []
    dry_run = _check_dry_run(query.texts("dryRun"), errors)
    manager = query.text("fieldManager")
    if byte_length(manager) > MAX_MANAGER_LENGTH:
        errors.append(too_long(Path("fieldManager"), MAX_MANAGER_LENGTH))
    elif not manager.isprintable():
        errors.append(
            FieldError(ErrorType.INVALID, "fieldManager", manager, "should only contain printable characters")
        )
    validation = query.text("fieldValidation")
    if validation not in _VALIDATIONS:
        errors.append(_unsupported("fieldValidation", validation, _VALIDATIONS))
    if apply and not manager:
        errors.append(required(Path("fieldManager"), "is required for apply patch"))
    if "force" in query and kind == "PatchOptions" and not apply:
        errors.append(forbidden(Path("force"), "may not be specified for non-apply patch"))
    if errors:
        raise invalid_options(kind, errors)
    return WriteOptions(dry_run, manager, validation or "Warn", query.flag("force"))


def _unsupported(field: str, value: Any, choices: tuple[str, ...]) -> FieldError:
    detail = "supported values: " + ", ".join(quote(choice) for choice in choices)
    return FieldError(ErrorType.NOT_SUPPORTED, field, value, detail)


def _check_dry_run(values: list[str], errors: Errors) -> bool:
    if values and any(value != "All" for value in values):
        errors.append(_unsupported("dryRun", values, ("All",)))
    return bool(values)


def read_delete_options(query: Query, body: Json | None) -> DeleteOptions:
    """From the body if there is one, else from the query. Raises Invalid, BadRequest."""
    source: Json = body if body else _delete_query(query)
    errors: Errors = []
    dry_run = source.get("dryRun") or []
    if not isinstance(dry_run, list):
        raise BadRequest("json: cannot unmarshal dryRun into Go struct field DeleteOptions.dryRun of type []string")
    is_dry_run = _check_dry_run(dry_run, errors)
    policy, orphan = source.get("propagationPolicy") or "", source.get("orphanDependents")
    if policy and orphan is not None:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(FieldError(ErrorType.INVALID, "propagationPolicy", policy, detail))
    if policy and policy not in _POLICIES:
        errors.append(_unsupported("propagationPolicy", policy, (*_POLICIES, "nil")))
    if errors:
        raise invalid_options("DeleteOptions", errors)
    grace = source.get("gracePeriodSeconds")
    if grace is not None and type(grace) is not int:
        raise BadRequest("json: cannot unmarshal gracePeriodSeconds into Go struct field of type int64")
    preconditions = source.get("preconditions") or {}
    if not isinstance(preconditions, dict):
        raise BadRequest("json: cannot unmarshal preconditions into Go struct field of type v1.Preconditions")
    return DeleteOptions(
        is_dry_run, grace, preconditions.get("uid"), preconditions.get("resourceVersion"), policy, orphan
    )


def _delete_query(query: Query) -> Json:
    source: Json = {"dryRun": query.texts("dryRun"), "propagationPolicy": query.text("propagationPolicy")}
    if "gracePeriodSeconds" in query:
        source["gracePeriodSeconds"] = read_int(query, "gracePeriodSeconds")
    if "orphanDependents" in query:
        source["orphanDependents"] = query.flag("orphanDependents")
    return source


def read_int(query: Query, name: str) -> int | None:
    text = query.text(name)
    if not text:
        return None
    digits = text[1:] if text[0] in "+-" else text
    if not (digits.isascii() and digits.isdigit()):
        raise BadRequest(f"strconv.ParseInt: parsing {quote(text)}: invalid syntax")
    number = int(text) if len(digits) < 20 else 1 << 63
    if not -(1 << 63) <= number < 1 << 63:
        raise BadRequest(f"strconv.ParseInt: parsing {quote(text)}: value out of range")
    return number


def read_list_options(query: Query, row: Row, version: str, *, watch: bool) -> ListOptions:
    """Raises BadRequest, Invalid."""
    match, resource_version = query.text("resourceVersionMatch"), query.text("resourceVersion")
    initial = query.flag("sendInitialEvents")
    continue_token = query.text("continue")
    errors = _check_match(match, resource_version, continue_token, watch, "sendInitialEvents" in query)
    if errors:
        raise invalid_options("ListOptions", errors)
    return ListOptions(
        labels=read_labels(query.text("labelSelector")),
        fields=read_fields(query.text("fieldSelector"), row, version),
        limit=max(read_int(query, "limit") or 0, 0),
        continue_token=continue_token,
        resource_version=resource_version,
        match=match,
        allow_bookmarks=query.flag("allowWatchBookmarks"),
        send_initial_events=initial,
        timeout_seconds=read_int(query, "timeoutSeconds"),
    )


def _check_match(match: str, revision: str, continue_token: str, watch: bool, initial: bool) -> Errors:
    errors: Errors = []
    place = Path("resourceVersionMatch")
    if initial and not watch:
        errors.append(forbidden(Path("sendInitialEvents"), "sendInitialEvents is forbidden for list"))
        return errors
    if initial and match != "NotOlderThan":
        detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        return [forbidden(place, detail)]
    if not match:
        return errors
    if watch and not initial:
        errors.append(
            forbidden(place, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
        )
    if not watch and not revision:
        errors.append(forbidden(place, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
    if continue_token:
        errors.append(forbidden(place, "resourceVersionMatch is forbidden when continue is provided"))
    if match not in _MATCHES:
        errors.append(_unsupported("resourceVersionMatch", match, (*_MATCHES, "")))
    if match == "Exact" and revision == "0":
        errors.append(forbidden(place, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    return errors


def read_labels(text: str) -> Selector | None:
    if not text:
        return None
    try:
        return parse_label_selector(text)
    except InvalidSelector as error:
        raise BadRequest(str(error)) from error


def read_fields(text: str, row: Row, version: str) -> FieldSelector:
    if not text:
        return EVERY_FIELD
    try:
        return check_field_selector(parse_field_selector(text), row.api_version(version), row.kind)
    except InvalidFieldSelector as error:
        raise BadRequest(str(error)) from error
