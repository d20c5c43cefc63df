"""Tokens of service accounts."""

from __future__ import annotations

import base64
from pathlib import Path

import msgspec
import pytest

from dray.apiserver.service_accounts import BoundObject, TokenIssuer, TokenSubject

UIDS = {("serviceaccounts", "blue", "bot"): "u1", ("pods", "blue", "p"): "u2"}
BOT = TokenSubject("blue", "bot", "u1")


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


async def find_uid(resource: str, namespace: str, name: str) -> str | None:
    return UIDS.get((resource, namespace, name))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def issuer(tmp_path: Path, clock: Clock) -> TokenIssuer:
    return TokenIssuer.load_or_create(tmp_path / "key", clock)


async def test_a_token_stands_for_its_account(issuer: TokenIssuer, tmp_path: Path, clock: Clock) -> None:
    token, expires = issuer.issue(BOT, seconds=600)
    assert expires == clock.now + 600
    again = TokenIssuer.load_or_create(tmp_path / "key", clock)
    user = await again.authenticate(token, find_uid)
    assert user is not None
    assert (user.name, user.uid) == ("system:serviceaccount:blue:bot", "u1")
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:blue", "system:authenticated")


async def test_a_token_of_a_pod_names_pod_and_node(issuer: TokenIssuer) -> None:
    subject = BOT._replace(pod=BoundObject("p", "u2"), node=BoundObject("n1", "u3"))
    user = await issuer.authenticate(issuer.issue(subject, seconds=600)[0], find_uid)
    assert user is not None
    assert user.extra["authentication.kubernetes.io/node-name"] == ("n1",)
    assert user.extra["authentication.kubernetes.io/pod-uid"] == ("u2",)


async def test_a_token_expires(issuer: TokenIssuer, clock: Clock) -> None:
    token, _ = issuer.issue(BOT, seconds=600)
    assert await issuer.authenticate(token, find_uid) is not None
    clock.now += 600
    assert await issuer.authenticate(token, find_uid) is None


@pytest.mark.parametrize(
    "subject",
    [
        TokenSubject("blue", "gone", "u1"),
        TokenSubject("blue", "bot", "made-again"),
        BOT._replace(pod=BoundObject("gone", "u2")),
    ],
)
async def test_a_token_dies_with_what_it_is_bound_to(issuer: TokenIssuer, subject: TokenSubject) -> None:
    assert await issuer.authenticate(issuer.issue(subject, seconds=600)[0], find_uid) is None


async def test_a_token_for_another_audience_is_no_good_here(issuer: TokenIssuer) -> None:
    token, _ = issuer.issue(BOT, seconds=600, audiences=["vault"])
    assert await issuer.authenticate(token, find_uid) is None
    assert await issuer.authenticate(token, find_uid, audiences=["vault"]) is not None


def forge(token: str, part: int, content: object) -> str:
    parts = token.split(".")
    parts[part] = base64.urlsafe_b64encode(msgspec.json.encode(content)).rstrip(b"=").decode()
    return ".".join(parts)


async def test_forged_tokens_are_refused(issuer: TokenIssuer, tmp_path: Path, clock: Clock) -> None:
    token, _ = issuer.issue(BOT, seconds=600)
    payload = token.split(".")[1]
    claims = msgspec.json.decode(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    stranger = TokenIssuer.load_or_create(tmp_path / "other", clock)
    forged = [
        stranger.issue(BOT, seconds=600)[0],
        forge(token, 1, {**claims, "exp": claims["exp"] + 10_000}),
        forge(token, 0, {"alg": "none"}),
        token.rpartition(".")[0] + ".",
        token[:-4] + "AAAA",
        token + "A",
        "a.b.c",
        "..",
        "é.é.é",
    ]
    for attempt in forged:
        assert await issuer.authenticate(attempt, find_uid) is None, attempt
