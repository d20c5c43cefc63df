"""Bearer tokens in a file."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from dray.apiserver.tokens import BadTokenFile, TokenFile


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tokens.csv"


def test_a_token_is_made_once_and_stands_for_its_user(path: Path) -> None:
    tokens = TokenFile(path)
    token = tokens.ensure("alice", ("team-a", "team-b"))
    assert tokens.ensure("alice", ("team-a", "team-b")) == token
    again = TokenFile(path).authenticate(token)
    assert again is not None
    assert (again.name, again.groups) == ("alice", ("team-a", "team-b", "system:authenticated"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_every_node_has_a_token_of_its_own(path: Path) -> None:
    tokens = TokenFile(path)
    issued = tokens.ensure_nodes(["n1", "n2"])
    assert tokens.ensure_nodes(["n2", "n3"])["n2"] == issued["n2"]
    user = tokens.authenticate(issued["n1"])
    assert user is not None
    assert (user.name, user.groups) == ("system:node:n1", ("system:nodes", "system:authenticated"))
    assert len(set(issued.values())) == 2


@pytest.mark.parametrize("token", ["", "wrong", "\udcff", "é" * 100])
def test_a_wrong_token_is_nobody(path: Path, token: str) -> None:
    tokens = TokenFile(path)
    tokens.ensure("alice")
    assert tokens.authenticate(token) is None


def test_a_token_that_is_added_to_the_file_works_at_once(path: Path) -> None:
    running, other = TokenFile(path), TokenFile(path)
    running.ensure("alice")
    added = other.ensure("bob")
    user = running.authenticate(added)
    assert user is not None
    assert user.name == "bob"
    assert running.ensure("bob") == added


def test_a_file_written_by_hand_is_understood(path: Path) -> None:
    path.write_text('secret,alice,7,"a,b"\n\nother,bob,8\n')
    tokens = TokenFile(path)
    alice, bob = tokens.authenticate("secret"), tokens.authenticate("other")
    assert alice is not None
    assert bob is not None
    assert (alice.name, alice.uid, alice.groups) == ("alice", "7", ("a", "b", "system:authenticated"))
    assert bob.groups == ("system:authenticated",)


def test_a_bad_line_is_named(path: Path) -> None:
    path.write_text("secret,alice,7\njust-a-token\n")
    with pytest.raises(BadTokenFile, match="line 2: expected"):
        TokenFile(path)
