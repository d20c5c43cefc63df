"""What the server answers: a body at once, or a stream of chunks for watches."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

import msgspec

from dray.api.errors import StatusError

JSON: Final = "application/json"


@dataclass(frozen=True, slots=True)
class ApiResponse:
    status: int
    body: bytes | AsyncIterator[bytes]
    """An iterator is closed (`aclose`) when the client goes away or the server stops."""
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()
    """More headers, e.g. warnings; a name may occur several times."""


def error_response(error: StatusError) -> ApiResponse:
    return ApiResponse(error.code, msgspec.json.encode(error.status()), headers=tuple(error.headers.items()))
