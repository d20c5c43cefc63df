"""Credentials that a program gives (kubeconfig's `exec`, client.authentication.k8s.io): cloud logins, SSO, vaults.

The program is run when credentials are first needed, when they have run out, and when the server refuses them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from dray.api.meta import Json
from dray.api.times import parse_time
from dray.runtime.credentials import KeyPair, NoCredentials

GROUP: Final = "client.authentication.k8s.io"
VERSIONS: Final = (f"{GROUP}/v1", f"{GROUP}/v1beta1")
LONGEST_RUN: Final = 60.0


@dataclass(frozen=True)
class ExecPlugin:
    """What a kubeconfig says about the program."""

    command: str
    arguments: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    api_version: str = VERSIONS[0]
    install_hint: str = ""
    cluster: Json | None = None
    """What the program is told of the cluster (`provideClusterInfo`)."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


class ExecCredentials:
    def __init__(
        self, plugin: ExecPlugin, environ: Mapping[str, str] = os.environ, now: Callable[[], datetime] = _utc_now
    ) -> None:
        self.plugin = plugin
        self._environ = environ
        self._now = now
        self._lock = asyncio.Lock()
        self._header: str | None = None
        self._key_pair: KeyPair | None = None
        self._has_run = False
        self._expires: datetime | None = None

    async def authorization(self) -> str | None:
        await self._ensure()
        return self._header

    async def key_pair(self) -> KeyPair | None:
        await self._ensure()
        return self._key_pair

    def refused(self) -> bool:
        """New ones are asked for at the next use; whoever was refused should try once more."""
        self._has_run = False
        return True

    async def _ensure(self) -> None:
        if self._is_fresh():
            return
        async with self._lock:  # requests that wait meanwhile share the answer
            if not self._is_fresh():
                self._use(await self._run())

    def _is_fresh(self) -> bool:
        return self._has_run and (self._expires is None or self._now() < self._expires)

    async def _run(self) -> Json:
        plugin = self.plugin
        spec: Json = {"interactive": False}
        if plugin.cluster is not None:
            spec["cluster"] = plugin.cluster
        told = {"kind": "ExecCredential", "apiVersion": plugin.api_version, "spec": spec}
        environment = {
            **self._environ,
            **dict(plugin.environment),
            "KUBERNETES_EXEC_INFO": msgspec.json.encode(told).decode(),
        }
        try:
            process = await asyncio.create_subprocess_exec(
                plugin.command,
                *plugin.arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                env=environment,
            )
        except OSError as error:
            raise self._failed(f"{error.strerror or error}") from None
        try:
            async with asyncio.timeout(LONGEST_RUN):
                output, _ = await process.communicate()
        except BaseException as error:
            process.kill()
            await process.wait()
            if isinstance(error, TimeoutError):
                raise self._failed(f"no answer within {LONGEST_RUN:g} s") from None
            raise
        if process.returncode:
            raise self._failed(f"exit status {process.returncode}")
        return self._read(output)

    def _read(self, output: bytes) -> Json:
        try:
            answer = msgspec.json.decode(output, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._failed(f"its answer is not JSON: {error}") from None
        if answer.get("kind") != "ExecCredential" or answer.get("apiVersion") != self.plugin.api_version:
            found = f"{answer.get('kind')} of {answer.get('apiVersion')}"
            raise self._failed(f"expected an ExecCredential of {self.plugin.api_version}, got {found}")
        status = answer.get("status")
        if not isinstance(status, dict):
            raise self._failed("its answer has no status")
        return status

    def _use(self, status: Json) -> None:
        token, certificate, key = (status.get(name, "") for name in ("token", "clientCertificateData", "clientKeyData"))
        if bool(certificate) != bool(key):
            raise self._failed("its answer has only one of clientCertificateData and clientKeyData")
        if not token and not certificate:
            raise self._failed("its answer has neither a token nor a client certificate")
        self._header = f"Bearer {token}" if token else None
        pair = KeyPair(certificate.encode(), key.encode()) if certificate else None
        if pair != self._key_pair:
            self._key_pair = pair
        until = status.get("expirationTimestamp")
        try:
            self._expires = parse_time(until) if until else None
        except ValueError as error:
            raise self._failed(f"expirationTimestamp: {error}") from None
        self._has_run = True

    def _failed(self, problem: str) -> NoCredentials:
        hint = f"\n{self.plugin.install_hint}" if self.plugin.install_hint else ""
        return NoCredentials(f"credential plugin {self.plugin.command}: {problem}{hint}")
