"""Bearer tokens that are made once and kept in a file, one per component and node.

The file has Kubernetes' form: `token,user,uid,"group1,group2"`. A running server notices a changed file when it sees
a token that it doesn't know, so tokens can be added without a restart.
"""

from __future__ import annotations

import csv
import hashlib
import hmac
import io
import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from dray.apiserver.private_files import read_private, write_private
from dray.apiserver.users import UserInfo

AUTHENTICATED: Final = "system:authenticated"
MASTERS: Final = "system:masters"
NODES: Final = "system:nodes"
NODE_PREFIX: Final = "system:node:"

ADMIN_USER: Final = "kubernetes-admin"
SCHEDULER_USER: Final = "system:kube-scheduler"
CONTROLLERS_USER: Final = "system:kube-controller-manager"


class BadTokenFile(Exception):
    """The token file can't be read; the text names the line."""


class _Row(NamedTuple):
    token: str
    user: str
    uid: str
    groups: tuple[str, ...]


class TokenFile:
    """The tokens of one data directory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._signature: tuple[int, int] | None = None
        self._rows: list[_Row] = []
        self._by_digest: dict[bytes, _Row] = {}
        self._load()

    def ensure(self, user: str, groups: Sequence[str] = ()) -> str:
        """The token of `user`, made if there is none yet."""
        return self._ensure([user], tuple(groups))[user]

    def ensure_nodes(self, names: Iterable[str]) -> dict[str, str]:
        """A token per node name."""
        users = [NODE_PREFIX + name for name in names]
        return {user.removeprefix(NODE_PREFIX): token for user, token in self._ensure(users, (NODES,)).items()}

    def _ensure(self, users: Sequence[str], groups: tuple[str, ...]) -> dict[str, str]:
        self._reload_if_changed()
        known = {row.user: row.token for row in self._rows if row.groups == groups}
        added = [_Row(secrets.token_urlsafe(32), user, "", groups) for user in users if user not in known]
        if added:
            self._save([*self._rows, *added])
        known.update((row.user, row.token) for row in added)
        return {user: known[user] for user in users}

    def authenticate(self, token: str) -> UserInfo | None:
        """Who holds this token.

        The lookup goes by digest, so the time it takes tells nothing about how much of a guess was right.
        """
        row = self._find(token)
        if row is None and self._reload_if_changed():
            row = self._find(token)
        if row is None:
            return None
        return UserInfo(row.user, uid=row.uid, groups=(*row.groups, AUTHENTICATED))

    def _find(self, token: str) -> _Row | None:
        row = self._by_digest.get(_digest(token))
        if row is None or not hmac.compare_digest(_encode(row.token), _encode(token)):
            return None
        return row

    def _reload_if_changed(self) -> bool:
        if self._stat() == self._signature:
            return False
        self._load()
        return True

    def _stat(self) -> tuple[int, int] | None:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        return found.st_mtime_ns, found.st_size

    def _load(self) -> None:
        self._signature = self._stat()
        content = read_private(self._path)
        self._use([] if content is None else list(_parse(self._path, content)))

    def _save(self, rows: list[_Row]) -> None:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        for row in rows:
            writer.writerow([row.token, row.user, row.uid, ",".join(row.groups)])
        write_private(self._path, text.getvalue().encode())
        self._signature = self._stat()
        self._use(rows)

    def _use(self, rows: list[_Row]) -> None:
        self._rows = rows
        self._by_digest = {_digest(row.token): row for row in rows}


def _encode(token: str) -> bytes:
    return token.encode(errors="surrogatepass")


def _digest(token: str) -> bytes:
    return hashlib.sha256(_encode(token)).digest()


def _parse(path: Path, content: bytes) -> list[_Row]:
    rows: list[_Row] = []
    try:
        for number, fields in enumerate(csv.reader(io.StringIO(content.decode())), start=1):
            if not fields:
                continue
            if len(fields) < 3 or not fields[0] or not fields[1]:
                raise BadTokenFile(f'{path} line {number}: expected `token,user,uid,"group1,group2"`')
            groups = tuple(group for group in fields[3].split(",") if group) if len(fields) > 3 else ()
            rows.append(_Row(fields[0], fields[1], fields[2], groups))
    except (UnicodeDecodeError, csv.Error) as error:
        raise BadTokenFile(f"{path} can't be read as a token file: {error}") from error
    return rows
