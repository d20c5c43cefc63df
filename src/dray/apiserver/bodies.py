"""Reads request bodies without trusting them."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, MutableMapping
from itertools import accumulate
from typing import Any, Final

from dray.api.errors import BadRequest, RequestTooLarge

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

_ESCAPED: Final = re.compile(rb"\\.", re.DOTALL)
_STRING: Final = re.compile(rb'"[^"]*"')
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b'[]{}"'))
_STEP: Final = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1, ord('"'): 0}
_PIECE: Final = 16 << 10


class ClientGone(Exception):
    """The client went away before its request was complete."""


async def read_body(receive: Receive, content_length: str, limit: int) -> bytes:
    """The whole body. Raises RequestTooLarge as soon as it is known, before more of it is read."""
    if content_length.isdigit() and int(content_length[:20]) > limit:
        raise _too_large(limit)
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        parts.append(part)
        if not message.get("more_body", False):
            return parts[0] if len(parts) == 1 else b"".join(parts)


def check_depth(body: bytes, limit: int) -> None:
    """Raises BadRequest if JSON is nested deeper than `limit`.

    Nearly every body has fewer brackets than that. For the others strings are cut out and the depth is summed up,
    piece by piece, so that a hostile body is refused early. It holds for YAML in flow style, too.
    """
    if body.count(b"[") + body.count(b"{") <= limit:
        return
    brackets = _STRING.sub(b"", _ESCAPED.sub(b"", body).translate(None, _NO_BRACKETS))
    depth = 0
    for start in range(0, len(brackets), _PIECE):
        piece = brackets[start : start + _PIECE]
        depths = list(accumulate(map(_STEP.__getitem__, piece), initial=depth))
        if max(depths) > limit:
            raise BadRequest(f"the request body is nested more than {limit} levels deep")
        depth = depths[-1]


def _too_large(limit: int) -> RequestTooLarge:
    return RequestTooLarge(f"Request entity too large: limit is {limit}")
