"""Errors of the registry in Kubernetes' words, made from what is known of the request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dray.api.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Expired,
    Forbidden,
    InternalError,
    Invalid,
    MethodNotAllowed,
    NotFound,
    RequestTooLarge,
    ServerTimeout,
    ServiceUnavailable,
    TooManyRequests,
)
from dray.api.meta import Json
from dray.api.names import check_dns_subdomain
from dray.api.quoting import quote
from dray.apiserver.resources import Row
from dray.store.errors import Overloaded, StorageFailed, StoreClosed
from dray.validation.fields import FieldError
from dray.validation.names import path_segment_problems

MODIFIED: Final = "the object has been modified; please apply your changes to the latest version and try again"
TOO_OLD: Final = "The resourceVersion for the provided list is too old."
CONTINUE_TOO_OLD: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


def _details(row: Row, name: str, kind: str = "") -> Json:
    details: Json = {}
    if name:
        details["name"] = name
    if row.group:
        details["group"] = row.group
    details["kind"] = kind or row.plural
    return details


def not_found(row: Row, name: str) -> NotFound:
    return NotFound(f"{row.group_resource} {quote(name)} not found", details=_details(row, name))


def already_exists(row: Row, name: str, *, generated: bool = False) -> AlreadyExists:
    text = f"{row.group_resource} {quote(name)} already exists"
    if generated:
        text += ", the server was not able to generate a unique name for the object"
    return AlreadyExists(text, details=_details(row, name))


def conflict(row: Row, name: str, why: str = MODIFIED) -> Conflict:
    text = f"Operation cannot be fulfilled on {row.group_resource} {quote(name)}: {why}"
    return Conflict(text, details=_details(row, name))


def precondition_failed(row: Row, name: str, what: str, wanted: str, actual: str, guess: str) -> Conflict:
    """Kubernetes names the kind here, and not the resource."""
    why = f"the {what} in the precondition ({wanted}) does not match the {what} in record ({actual}). {guess}"
    text = f"Operation cannot be fulfilled on {row.group_kind} {quote(name)}: {why}"
    return Conflict(text, details=_details(row, name, row.kind))


def uid_changed(row: Row, namespace: str, name: str, wanted: str, actual: str) -> Conflict:
    """With the key that the object would have in Kubernetes' store."""
    why = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {actual}"
    place = "minions" if row.kind == "Node" else row.plural
    key = "/".join(part for part in ("/registry", place, namespace, name) if part)
    return conflict(
        row,
        name,
        f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {why}",
    )


def invalid_object(kind: str, group: str, name: str, errors: Sequence[FieldError]) -> Invalid:
    texts = list(dict.fromkeys(str(error) for error in errors))
    said = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details: Json = {"name": name, "group": group, "kind": kind, "causes": [error.cause() for error in errors]}
    details = {field: value for field, value in details.items() if value}
    group_kind = f"{kind}.{group}" if group else kind
    return Invalid(f"{group_kind} {quote(name)} is invalid: {said}", details=details)


def invalid_options(kind: str, errors: Sequence[FieldError]) -> Invalid:
    return invalid_object(kind, "meta.k8s.io", "", errors)


def forbidden(row: Row, name: str, why: str, causes: list[Json] | None = None) -> Forbidden:
    named = f" {quote(name)}" if name else ""
    details = _details(row, name)
    if causes:
        details["causes"] = causes
    return Forbidden(f"{row.group_resource}{named} is forbidden: {why}", details=details)


def namespace_terminating(row: Row, name: str, namespace: str) -> Forbidden:
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    return forbidden(row, name, why, [cause])


def namespace_not_found(namespace: str) -> NotFound:
    return NotFound(f"namespaces {quote(namespace)} not found", details={"name": namespace, "kind": "namespaces"})


def method_not_allowed() -> MethodNotAllowed:
    return MethodNotAllowed("the server does not allow this method on the requested resource", details={})


def too_large_revision(wanted: int, current: int) -> ServerTimeout:
    details: Json = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    return ServerTimeout(f"Too large resource version: {wanted}, current: {current}", details=details)


def expired(text: str = TOO_OLD) -> Expired:
    return Expired(text)


def too_large(size: int, limit: int) -> RequestTooLarge:
    return RequestTooLarge(f"Request is too large: the object takes {size} bytes, the limit is {limit}", details={})


def check_name(name: str) -> None:
    """A name in a path must be one segment of it. Raises BadRequest."""
    problems = path_segment_problems(name, False)
    if problems:
        raise BadRequest(f"Name parameter invalid: {quote(name)}: {problems[0]}")


def check_namespace(namespace: str) -> None:
    problems = path_segment_problems(namespace, False) or check_dns_subdomain(namespace)
    if problems:
        raise BadRequest(f"Namespace parameter invalid: {quote(namespace)}: {problems[0]}")


def invalid_revision(value: Any) -> BadRequest:
    return BadRequest(
        f"invalid resource version: resourceVersion: Invalid value: {quote(str(value))}: "
        f"strconv.ParseUint: parsing {quote(str(value))}: invalid syntax"
    )


class _StoreErrors:
    """A context in which what the store can't do right now is said in the words of the API."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        match error:
            case None:
                return
            case Overloaded():
                text = "The server is currently overloaded with writes, please try again later"
                raise TooManyRequests(text, details={"retryAfterSeconds": 1}, headers={"Retry-After": "1"}) from error
            case StorageFailed():
                raise InternalError(f"Internal error occurred: {error}") from error
            case StoreClosed():
                raise ServiceUnavailable("the server is shutting down", headers={"Retry-After": "1"}) from error


store_errors: Final = _StoreErrors()
