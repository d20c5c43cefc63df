"""Where something is wrong and what: field paths, and errors worded as Kubernetes words them.

Paths are cheap to carry and only turned into text when an error is made, since most objects have none. They are the
same for every object, so most are made once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from dray.api.meta import Json
from dray.validation.rendering import JsonText, quote, render_value

_REMEMBERED_PATHS: Final = 20_000
"""In all: what is sent to us must not decide how much we remember."""
_REMEMBERED_ITEMS: Final = 128
_count: Final = itertools.count()


class Path:
    """A place in an object, such as `spec.devices.requests[0].name`."""

    __slots__ = ("_known", "_parent", "_step")

    def __init__(self, step: str, parent: Path | None = None, known: dict[str | int, Path] | None = None) -> None:
        self._step = step
        self._parent = parent
        self._known = _NOTHING if known is None else known
        """Places below this one that were asked for before: fields, and the first items of lists."""

    def child(self, *names: str) -> Path:
        path = self
        for name in names:
            path = path._known.get(name) or path._below(name, "." + name)
        return path

    def index(self, position: int) -> Path:
        if position >= _REMEMBERED_ITEMS:
            return Path(f"[{position}]", self)
        return self._known.get(position) or self._below(position, f"[{position}]")

    def key(self, name: str) -> Path:
        return Path(f"[{name}]", self)

    def _below(self, key: str | int, step: str) -> Path:
        if self._known is _NOTHING or next(_count) >= _REMEMBERED_PATHS:
            return Path(step, self)
        return self._known.setdefault(key, Path(step, self, {}))

    def __str__(self) -> str:
        steps: list[str] = []
        path: Path | None = self
        while path is not None:
            steps.append(path._step)
            path = path._parent
        return "".join(reversed(steps))

    def __repr__(self) -> str:
        return f"Path({str(self)!r})"


_NOTHING: Final[dict[str | int, Path]] = {}
"""That of places which nobody remembers, and so none below them."""

METADATA = Path("metadata", known={})
SPEC = Path("spec", known={})
STATUS = Path("status", known={})


class ErrorType(Enum):
    """The value is the `reason` of a cause in a `Status`, the label begins its message."""

    NOT_FOUND = ("FieldValueNotFound", "Not found")
    REQUIRED = ("FieldValueRequired", "Required value")
    DUPLICATE = ("FieldValueDuplicate", "Duplicate value")
    INVALID = ("FieldValueInvalid", "Invalid value")
    NOT_SUPPORTED = ("FieldValueNotSupported", "Unsupported value")
    FORBIDDEN = ("FieldValueForbidden", "Forbidden")
    TOO_LONG = ("FieldValueTooLong", "Too long")
    TOO_MANY = ("FieldValueTooMany", "Too many")
    INTERNAL = ("InternalError", "Internal error")

    @property
    def reason(self) -> str:
        return self.value[0]

    @property
    def label(self) -> str:
        return self.value[1]


_WITHOUT_VALUE = frozenset({ErrorType.REQUIRED, ErrorType.FORBIDDEN, ErrorType.TOO_LONG, ErrorType.INTERNAL})


@dataclass(frozen=True, slots=True)
class FieldError:
    """One problem of an object.

    `origin`, `covered` and `beta` say how handwritten and declarative findings of the same problem relate; see
    `dray.validation.declarative`. They are no part of what a client sees.
    """

    type: ErrorType
    field: str
    bad_value: object = None
    detail: str = ""
    origin: str = ""
    covered: bool = False
    beta: bool = False

    @property
    def message(self) -> str:
        """Everything but the field, as in a cause's `message`."""
        text = self.type.label
        if self.type not in _WITHOUT_VALUE:
            text = f"{text}: {render_value(self.bad_value)}"
        return f"{text}: {self.detail}" if self.detail else text

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"

    def cause(self) -> Json:
        """The entry of `status.details.causes`."""
        return {"reason": self.type.reason, "message": self.message, "field": self.field}


Errors = list[FieldError]


def required(path: Path, detail: str = "", *, origin: str = "") -> FieldError:
    return FieldError(ErrorType.REQUIRED, str(path), "", detail, origin)


def invalid(path: Path, value: object, detail: str, *, origin: str = "") -> FieldError:
    return FieldError(ErrorType.INVALID, str(path), value, detail, origin)


def not_supported(path: Path, value: str, supported: Iterable[str]) -> FieldError:
    detail = "supported values: " + ", ".join(quote(choice) for choice in supported)
    return FieldError(ErrorType.NOT_SUPPORTED, str(path), JsonText(value), detail)


def forbidden(path: Path, detail: str) -> FieldError:
    return FieldError(ErrorType.FORBIDDEN, str(path), "", detail)


def too_long(path: Path, limit: int, *, origin: str = "", unit: str = "bytes") -> FieldError:
    return FieldError(ErrorType.TOO_LONG, str(path), "", f"may not be more than {limit} {unit}", origin)


def too_many(path: Path, count: int, limit: int, *, origin: str = "") -> FieldError:
    return FieldError(ErrorType.TOO_MANY, str(path), count, f"must have at most {limit} items", origin)


def duplicate(path: Path, value: object) -> FieldError:
    return FieldError(ErrorType.DUPLICATE, str(path), value)


def not_found(path: Path, value: object) -> FieldError:
    return FieldError(ErrorType.NOT_FOUND, str(path), value)


def internal(path: Path, detail: str) -> FieldError:
    return FieldError(ErrorType.INTERNAL, str(path), "", detail)


def mark_covered(errors: Iterable[FieldError]) -> Errors:
    """Handwritten errors that give way to a declarative finding of the same problem."""
    return [replace(error, covered=True) for error in errors]


def byte_length(text: str) -> int:
    """Kubernetes' limits count bytes."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
