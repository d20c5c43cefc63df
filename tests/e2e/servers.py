"""Starts `dray apiserver` in a process of its own, and talks to it."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

Json = dict[str, Any]


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Json:
        decoded: Json = json.loads(self.body)
        return decoded

    @property
    def reason(self) -> str:
        return str(self.json.get("reason"))


class Client:
    """One identity. A connection is kept per client; use one client per thread."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        self.host, _, port = cluster["server"].removeprefix("https://").rpartition(":")
        self.port = int(port)
        self.token: str | None = config["users"][0]["user"]["token"]
        self.context = ssl.create_default_context(cafile=str(_authority(kubeconfig)))
        self._connection: http.client.HTTPSConnection | None = None

    def with_token(self, token: str | None) -> Client:
        other = object.__new__(Client)
        other.host, other.port, other.context, other.token = self.host, self.port, self.context, token
        other._connection = None
        return other

    def ask(self, method: str, path: str, body: Any = None, *, kind: str = "application/json", **headers: str) -> Reply:
        """`body` is sent as it is if bytes, else as JSON."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if data is not None:
            sent["Content-Type"] = kind
        if self.token is not None:
            sent["Authorization"] = f"Bearer {self.token}"
        if self._connection is None:
            self._connection = http.client.HTTPSConnection(self.host, self.port, context=self.context, timeout=30)
        try:
            self._connection.request(method, path, data, sent)
            response = self._connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException):
            self.close()
            raise
        return Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, content)

    def expect(self, status: int, method: str, path: str, body: Any = None, **more: str) -> Reply:
        reply = self.ask(method, path, body, **more)
        assert reply.status == status, f"{method} {path}: {reply.status} {reply.body[:1000]!r}"
        return reply

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _authority(kubeconfig: Path) -> Path:
    folder = kubeconfig.parent
    return (folder if (folder / "pki").exists() else folder.parent) / "pki" / "ca.crt"


class Server:
    """A running server. `kill` ends it as a power cut would, `stop` as an operator would."""

    def __init__(self, data_dir: Path, *arguments: str) -> None:
        self.data_dir = data_dir
        command = [sys.executable, "-m", "dray", "apiserver", "--data-dir", str(data_dir), *arguments]
        self.log = data_dir.parent / f"{data_dir.name}.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, env={**os.environ, "COLUMNS": "200"}
            )
        self.output = self._wait_until_ready()

    def _wait_until_ready(self) -> str:
        assert self.process.stdout is not None
        said = b""
        for line in self.process.stdout:
            said += line
            if line.startswith(b"Try:"):
                return said.decode()
        self.process.wait()
        raise AssertionError(f"the server didn't start: {said.decode()} {self.log.read_text()}")

    @property
    def admin(self) -> Client:
        return Client(self.data_dir / "admin.kubeconfig")

    def client(self, name: str) -> Client:
        """`scheduler`, `controllers` or `node-NAME`."""
        return Client(self.data_dir / "kubeconfigs" / f"{name}.kubeconfig")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(timeout=30)


@contextmanager
def serving(data_dir: Path, *arguments: str) -> Iterator[Server]:
    """A server on a free port."""
    server = Server(data_dir, "--port", "0", *arguments)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.stop()
        if server.process.stdout is not None:
            server.process.stdout.close()
