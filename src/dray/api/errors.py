"""API errors as Kubernetes words them: one exception that carries a `Status`, with a subclass per reason.

StatusError
├── BadRequest, Unauthorized, Forbidden, NotFound, MethodNotAllowed, NotAcceptable
├── AlreadyExists, Conflict, Expired, Invalid
├── RequestTooLarge, UnsupportedMediaType, TooManyRequests
└── InternalError, ServiceUnavailable, ServerTimeout
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from dray.api.meta import Json


class StatusError(Exception):
    """A failed API request. `status()` is the object that a client gets."""

    code: ClassVar[int] = 500
    reason: ClassVar[str] = "InternalError"

    def __init__(self, message: str, *, details: Json | None = None, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details: Json = details or {}
        self._shows_details = details is not None  # some answers carry empty details, as Kubernetes' do
        self.headers = headers or {}

    def status(self) -> Json:
        body: Json = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        body["reason"] = self.reason
        if self._shows_details:
            body["details"] = self.details
        body["code"] = self.code
        return body


class BadRequest(StatusError):
    code, reason = 400, "BadRequest"


class Unauthorized(StatusError):
    code, reason = 401, "Unauthorized"


class Forbidden(StatusError):
    code, reason = 403, "Forbidden"


class NotFound(StatusError):
    code, reason = 404, "NotFound"


class MethodNotAllowed(StatusError):
    code, reason = 405, "MethodNotAllowed"


class NotAcceptable(StatusError):
    code, reason = 406, "NotAcceptable"


class AlreadyExists(StatusError):
    code, reason = 409, "AlreadyExists"


class Conflict(StatusError):
    code, reason = 409, "Conflict"


class Expired(StatusError):
    """410: the asked revision is no longer kept; list again."""

    code, reason = 410, "Expired"


class Invalid(StatusError):
    code, reason = 422, "Invalid"


class RequestTooLarge(StatusError):
    code, reason = 413, "RequestEntityTooLarge"


class UnsupportedMediaType(StatusError):
    code, reason = 415, "UnsupportedMediaType"


class TooManyRequests(StatusError):
    code, reason = 429, "TooManyRequests"


class InternalError(StatusError):
    code, reason = 500, "InternalError"


class ServiceUnavailable(StatusError):
    code, reason = 503, "ServiceUnavailable"


class ServerTimeout(StatusError):
    code, reason = 504, "Timeout"


_BY_REASON: Final[dict[str, type[StatusError]]] = {cls.reason: cls for cls in StatusError.__subclasses__()}
_BY_CODE: Final[dict[int, type[StatusError]]] = {cls.code: cls for cls in reversed(StatusError.__subclasses__())}


def error_from_status(status: Json, code: int) -> StatusError:
    """The exception for a `Status` body; an unknown reason falls back to the HTTP code."""
    reason: Any = status.get("reason") or ""
    cls = _BY_REASON.get(reason) or _BY_CODE.get(code) or StatusError
    return cls(str(status.get("message") or f"HTTP {code}"), details=status.get("details"))
