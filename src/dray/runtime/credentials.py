"""Who we are to an API server: tokens, files with tokens, passwords, programs that give tokens or certificates."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple, Protocol

RELOAD_AFTER: Final = 50.0
"""Seconds. Kubernetes changes mounted tokens long before the old one ends, and keeps reading them once a minute."""


class NoCredentials(OSError):
    """Credentials can't be had at the moment: a file is gone, a program failed."""


class KeyPair(NamedTuple):
    """A client certificate and its key, as PEM."""

    certificate: bytes
    key: bytes


class Credentials(Protocol):
    async def authorization(self) -> str | None:
        """The value of the Authorization header, if any. Raises NoCredentials."""
        ...

    async def key_pair(self) -> KeyPair | None:
        """A client certificate that belongs to these credentials. The same object as long as it is valid."""
        ...

    def refused(self) -> bool:
        """The server didn't accept them. Whether it makes sense to ask for new ones and try again."""
        ...


class Anonymous:
    async def authorization(self) -> str | None:
        return None

    async def key_pair(self) -> KeyPair | None:
        return None

    def refused(self) -> bool:
        return False


class StaticToken(Anonymous):
    def __init__(self, token: str) -> None:
        self._header = f"Bearer {token}"

    async def authorization(self) -> str | None:
        return self._header


class Password(Anonymous):
    def __init__(self, user: str, password: str) -> None:
        self._header = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

    async def authorization(self) -> str | None:
        return self._header


class TokenFile(Anonymous):
    """A token that somebody else renews in a file, such as a service account's in a pod."""

    def __init__(self, path: Path, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._monotonic = monotonic
        self._header = ""
        self._read_at = 0.0

    async def authorization(self) -> str | None:
        if not self._header or self._monotonic() - self._read_at >= RELOAD_AFTER:
            self._read()
        return self._header

    def refused(self) -> bool:
        """True if the file holds another token by now."""
        before = self._header
        self._header = ""
        self._read()
        return self._header != before

    def _read(self) -> None:
        try:
            token = self._path.read_text().strip()
        except OSError as error:
            raise NoCredentials(f"token file {self._path}: {error.strerror or error}") from None
        if not token:
            raise NoCredentials(f"token file {self._path} is empty")
        self._header = f"Bearer {token}"
        self._read_at = self._monotonic()
