"""Probes of containers: read from the spec, and asked once."""

from __future__ import annotations

import asyncio
import os
import signal
import ssl
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, assert_never

from dray.api.meta import Json

ProbeKind = Literal["startup", "liveness", "readiness"]
KINDS: Final[tuple[ProbeKind, ...]] = ("startup", "liveness", "readiness")
OUTPUT_LIMIT: Final = 1024
"""Bytes of what a probe says that are shown."""


@dataclass(frozen=True)
class Exec:
    command: tuple[str, ...]


@dataclass(frozen=True)
class TcpSocket:
    port: int
    host: str = ""
    """Empty: the pod's own address."""


@dataclass(frozen=True)
class HttpGet:
    port: int
    host: str = ""
    path: str = "/"
    is_secure: bool = False
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Probe:
    kind: ProbeKind
    action: Exec | TcpSocket | HttpGet
    initial_delay: float = 0.0
    period: float = 10.0
    timeout: float = 1.0
    success_threshold: int = 1
    failure_threshold: int = 3
    grace: float | None = None
    """How long the container may take to end after this probe failed, if not as long as the pod says."""


def read_probes(container: Json) -> dict[ProbeKind, Probe]:
    """Those that this agent understands; `find_unsupported` names the others."""
    probes: dict[ProbeKind, Probe] = {}
    for kind in KINDS:
        spec = container.get(f"{kind}Probe")
        action = None if spec is None else _read_action(spec, container)
        if spec is not None and action is not None:
            probes[kind] = Probe(
                kind,
                action,
                initial_delay=spec.get("initialDelaySeconds", 0),
                period=spec.get("periodSeconds", 10),
                timeout=spec.get("timeoutSeconds", 1),
                success_threshold=spec.get("successThreshold", 1),
                failure_threshold=spec.get("failureThreshold", 3),
                grace=spec.get("terminationGracePeriodSeconds"),
            )
    return probes


def find_unsupported(container: Json) -> Iterator[str]:
    """Probes and hooks that the agent leaves out, in words."""
    for kind in KINDS:
        spec = container.get(f"{kind}Probe")
        if spec is not None and _read_action(spec, container) is None:
            what = "grpc" if "grpc" in spec else "its port" if "httpGet" in spec or "tcpSocket" in spec else "its kind"
            yield f"{kind} probe ({what})"
    for hook in container.get("lifecycle") or {}:
        yield f"lifecycle hook {hook}"


def _read_action(spec: Json, container: Json) -> Exec | TcpSocket | HttpGet | None:
    match spec:
        case {"exec": dict(action)}:
            return Exec(tuple(action.get("command") or ()))
        case {"tcpSocket": dict(action)}:
            port = _read_port(action.get("port"), container)
            return None if port is None else TcpSocket(port, action.get("host", ""))
        case {"httpGet": dict(action)}:
            port = _read_port(action.get("port"), container)
            headers = tuple((header["name"], header.get("value", "")) for header in action.get("httpHeaders") or ())
            is_secure = action.get("scheme") == "HTTPS"
            return (
                None
                if port is None
                else HttpGet(port, action.get("host", ""), action.get("path") or "/", is_secure, headers)
            )
    return None


def _read_port(port: object, container: Json) -> int | None:
    """A number, or the name of one of the container's ports."""
    if isinstance(port, str) and not port.isdigit():
        named = (entry for entry in container.get("ports") or () if entry.get("name") == port)
        return next((int(entry["containerPort"]) for entry in named), None)
    return int(port) if isinstance(port, int | str) else None


async def ask(probe: Probe, *, address: str, env: Mapping[str, str], directory: Path) -> str:
    """Why the probe fails; empty if it passes. A command runs with these variables, in this directory."""
    try:
        async with asyncio.timeout(probe.timeout):
            match probe.action:
                case Exec(command):
                    return await _execute(command, env, directory)
                case TcpSocket() as action:
                    _, writer = await asyncio.open_connection(action.host or address, action.port)
                    writer.close()
                    return ""
                case HttpGet() as action:
                    return await _get(action, address)
                case other:
                    assert_never(other)
    except TimeoutError:
        return f"no answer within {probe.timeout:g}s"
    except OSError as error:
        return str(error)


async def _execute(command: Sequence[str], env: Mapping[str, str], directory: Path) -> str:
    process = await asyncio.create_subprocess_exec(
        *command,
        env=env,
        cwd=directory,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if process.returncode == 0:
        return ""
    text = output[:OUTPUT_LIMIT].decode(errors="replace").strip()
    return text or f"command ended with {process.returncode}"


async def _get(action: HttpGet, address: str) -> str:
    host = action.host or address
    reader, writer = await asyncio.open_connection(host, action.port, ssl=_unchecked() if action.is_secure else None)
    try:
        headers = {"host": f"{host}:{action.port}", "user-agent": "kube-probe/dray", "accept": "*/*"}
        headers |= {name.lower(): value for name, value in action.headers}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(f"GET {action.path} HTTP/1.1\r\n{lines}connection: close\r\n\r\n".encode())
        status = (await reader.readline()).decode("latin-1").split(" ")
    finally:
        writer.close()
    code = int(status[1]) if len(status) > 1 and status[1].isdigit() else 0
    return "" if 200 <= code < 400 else f"HTTP probe failed with statuscode: {code}"


def _unchecked() -> ssl.SSLContext:
    """As a kubelet's: containers have certificates of their own making."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
