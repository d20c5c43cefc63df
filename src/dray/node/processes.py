"""The `process` runtime: containers are local processes with the CDI edits applied. For laptops, not for isolation.

- variables of the edits and of the container are set, and nothing else of the agent's environment but PATH and such;
- mounts, those of volumes too, are links below a private root directory, which the variable DRAY_ROOT names; so are
  device nodes;
- hooks run before the process starts (createRuntime, createContainer, startContainer) and after it ended (poststop);
- the process has a keeper (`shim.py`), so that it outlives the agent: a new agent finds it, or how it ended.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import uuid
from pathlib import Path

from dray.api.meta import Time
from dray.node.hooks import AFTER, AFTER_START, BEFORE, ContainerHooks, HookFailed
from dray.node.images import ImageFolders
from dray.node.probes import Probe, ask
from dray.node.runtimes import ContainerSpec, Running, StartFailed, log_path
from dray.node.shims import (
    AlreadyLaunched,
    Keeper,
    Launched,
    LaunchFailed,
    launch,
    recover_last,
    send_signal,
    wait_ended,
)

log = logging.getLogger(__name__)

KEPT_LOGS = 2
INHERITED = ("PATH", "HOME", "LANG", "TMPDIR")


class ProcessRuntime:
    name = "process"

    def __init__(self, images: ImageFolders | None = None) -> None:
        self._images = images or ImageFolders()

    async def start(self, spec: ContainerSpec) -> Running:
        command = self._images.resolve(spec.image, spec.command, spec.arguments)
        container_id = f"process://{uuid.uuid4()}"
        root = spec.directory / "root"
        hooks = ContainerHooks.of(
            spec.edits.hooks, container_id=container_id, bundle=spec.directory, annotations=spec.annotations
        )
        try:
            root.mkdir(parents=True, exist_ok=True)
            _link_mounts(spec, root)
            log_path(spec.directory, spec.attempt - KEPT_LOGS).unlink(missing_ok=True)
            hooks.save(spec.directory)
            await hooks.run(BEFORE, status="creating")
            launched, keeper = await launch(
                spec.directory,
                container_id=container_id,
                attempt=spec.attempt,
                command=command,
                env=_environment(spec, root),
                log=spec.log_path,
                working_directory=spec.working_directory or str(root),
            )
        except (OSError, HookFailed, LaunchFailed) as error:
            raise StartFailed(f"container {spec.name}: {error}") from error
        except AlreadyLaunched:
            found = self.find(spec)
            if found is None:
                raise StartFailed(f"container {spec.name}: attempt {spec.attempt} is under way elsewhere") from None
            return found
        process = _Process(spec, launched, keeper)
        await process.run_hooks(AFTER_START, "running")
        return process

    def find(self, spec: ContainerSpec) -> Running | None:
        launched = recover_last(spec.directory)
        return None if launched is None else _Process(spec, launched, None)

    async def ask(self, spec: ContainerSpec, probe: Probe) -> str:
        root = spec.directory / "root"
        directory = Path(spec.working_directory) if spec.working_directory else root
        return await ask(probe, address=spec.address, env=_environment(spec, root), directory=directory)


def _link_mounts(spec: ContainerSpec, root: Path) -> None:
    links = [(mount.container_path, mount.host_path) for mount in (*spec.mounts, *spec.edits.mounts)]
    links += [(node.path, node.host_path or node.path) for node in spec.edits.device_nodes]
    for inside, outside in sorted(links, key=lambda link: link[0].count("/")):  # what others may lie in comes first
        link = root / inside.lstrip("/")
        if ".." in link.parts:
            raise StartFailed(f"mount {inside}: the path leaves the container's root")
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.parent.resolve().is_relative_to(root.resolve()):
            raise StartFailed(f"mount {inside} lies inside another mount, where no link can be made")
        link.unlink(missing_ok=True)
        link.symlink_to(outside)


def _environment(spec: ContainerSpec, root: Path) -> dict[str, str]:
    env = {name: os.environ[name] for name in INHERITED if name in os.environ}
    env |= {"HOSTNAME": spec.pod_name} | dict(spec.env)
    env |= dict(item.split("=", 1) for item in spec.edits.env if "=" in item)
    env["DRAY_ROOT"] = str(root)
    return env


class _Process:
    """`keeper` is None if an earlier agent started it."""

    def __init__(self, spec: ContainerSpec, launched: Launched, keeper: Keeper | None) -> None:
        self._spec = spec
        self._launched = launched
        self._keeper = keeper

    @property
    def id(self) -> str:
        return self._launched.id

    @property
    def attempt(self) -> int:
        return self._launched.attempt

    @property
    def started_at(self) -> Time:
        return self._launched.started_at

    async def wait(self) -> int:
        try:
            code = await self._ended()
        finally:
            if self._keeper is not None:
                self._keeper.close()
        await self.run_hooks(AFTER, "stopped")
        return code

    async def run_hooks(self, names: tuple[str, ...], status: str) -> None:
        """Those around a container that runs or ran: their failure changes nothing for it."""
        try:
            hooks = ContainerHooks.load(self._spec.directory)
            await hooks.run(names, status=status, pid=self._launched.pid)
        except (HookFailed, OSError) as error:
            log.warning("container %s of pod %s: %s", self._spec.name, self._spec.pod_name, error)

    async def _ended(self) -> int:
        if self._keeper is not None:
            await self._keeper.wait()
        ended = await wait_ended(self._spec.directory, self._launched)
        assert ended.exit_code is not None  # it waits for that
        return ended.exit_code

    async def stop(self, grace_seconds: float) -> None:
        if self._launched.exit_code is not None:
            return
        ended = asyncio.ensure_future(self._ended())
        try:
            send_signal(self._launched, signal.SIGTERM)
            done, _ = await asyncio.wait((ended,), timeout=grace_seconds)
            if not done:
                send_signal(self._launched, signal.SIGKILL)
                await ended
        finally:
            ended.cancel()
