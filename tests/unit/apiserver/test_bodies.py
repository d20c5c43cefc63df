"""Request bodies: bounded in size and depth."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

import pytest

from dray.api.errors import BadRequest, RequestTooLarge
from dray.apiserver.bodies import ClientGone, Receive, check_depth, read_body


def sending(*parts: bytes | None) -> Receive:
    """A client who sends these parts; None: goes away."""
    waiting = list(parts)

    async def receive() -> MutableMapping[str, Any]:
        part = waiting.pop(0)
        if part is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": part, "more_body": bool(waiting)}

    return receive


async def test_parts_are_put_together() -> None:
    assert await read_body(sending(b"ab", b"", b"c"), "3", 10) == b"abc"


async def test_a_body_is_refused_by_its_announced_length_before_it_is_read() -> None:
    with pytest.raises(RequestTooLarge, match="limit is 10"):
        await read_body(sending(), "11", 10)


async def test_a_body_that_lies_about_its_length_is_refused_when_it_gets_too_long() -> None:
    with pytest.raises(RequestTooLarge):
        await read_body(sending(b"x" * 6, b"x" * 6, b"never read"), "", 10)


async def test_a_client_who_goes_away_is_no_error_of_the_server() -> None:
    with pytest.raises(ClientGone):
        await read_body(sending(b"x", None), "", 10)


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 100_000,
        b"[1," * 100_000,
        b'["",' * 5_000,
        b'{"a":[' * 300 + b"]}" * 300,
        rb'["\"",' * 5_000,
    ],
)
def test_deep_json_is_refused(body: bytes) -> None:
    with pytest.raises(BadRequest, match="nested more than 200 levels"):
        check_depth(body, 200)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[" * 200 + b"]" * 200,
        b"[]" * 50_000,
        b'["' + b"[" * 1000 + b'"]',
        rb'["\"' + b"[" * 1000 + rb'\\"]',
        b'[{"a":[1,{"b":[]}]}]' * 1000,
    ],
)
def test_wide_json_and_brackets_in_strings_pass(body: bytes) -> None:
    check_depth(body, 200)
