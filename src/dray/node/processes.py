"""The `process` runtime: containers are local processes with the CDI edits applied. For laptops, not for isolation.

- variables of the edits and of the container are set, and nothing else of the agent's environment but PATH and HOME;
- mounts are links below a private root directory, which the variable DRAY_ROOT names;
- device nodes are links there too;
- hooks run before the process starts (createRuntime, createContainer, startContainer) and after it ended (poststop),
  with the OCI state on standard input.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import uuid
from pathlib import Path

from dray.api.cdi import Hook
from dray.node.runtimes import ContainerSpec, Running, StartFailed

HOOKS_BEFORE = ("prestart", "createRuntime", "createContainer", "startContainer")
HOOKS_AFTER = ("poststop",)
INHERITED = ("PATH", "HOME", "LANG", "TMPDIR")


class ProcessRuntime:
    name = "process"

    async def start(self, spec: ContainerSpec) -> Running:
        if not spec.command:
            raise StartFailed(
                f"container {spec.name} has no command, and the process runtime has no images to take one from"
            )
        container_id = f"process://{uuid.uuid4()}"
        root = spec.directory / "root"
        root.mkdir(parents=True, exist_ok=True)
        try:
            self._link_mounts(spec, root)
            await self._run_hooks(spec, container_id, HOOKS_BEFORE, "creating")
            process = await self._spawn(spec, root)
        except OSError as error:
            raise StartFailed(f"container {spec.name}: {error}") from error
        return _Process(self, spec, container_id, process)

    def _link_mounts(self, spec: ContainerSpec, root: Path) -> None:
        links = [(mount.container_path, mount.host_path) for mount in spec.edits.mounts]
        links += [(node.path, node.host_path or node.path) for node in spec.edits.device_nodes]
        for inside, outside in links:
            link = (root / inside.lstrip("/")).absolute()
            if ".." in link.parts:
                raise StartFailed(f"mount {inside}: the path leaves the container's root")
            link.parent.mkdir(parents=True, exist_ok=True)
            link.unlink(missing_ok=True)
            link.symlink_to(outside)

    async def _spawn(self, spec: ContainerSpec, root: Path) -> asyncio.subprocess.Process:
        env = {name: os.environ[name] for name in INHERITED if name in os.environ}
        env |= spec.env
        env |= dict(item.split("=", 1) for item in spec.edits.env if "=" in item)
        env["DRAY_ROOT"] = str(root)
        spec.log_path.parent.mkdir(parents=True, exist_ok=True)
        with spec.log_path.open("ab") as log:
            return await asyncio.create_subprocess_exec(
                *spec.command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=env,
                cwd=spec.working_directory or spec.directory,
                start_new_session=True,
            )

    async def _run_hooks(self, spec: ContainerSpec, container_id: str, names: tuple[str, ...], status: str) -> None:
        state = {
            "ociVersion": "1.0.2",
            "id": container_id,
            "status": status,
            "bundle": str(spec.directory),
            "annotations": dict(spec.annotations),
        }
        for name in names:
            for hook in spec.edits.hooks:
                if hook.hook_name == name:
                    await _run_hook(hook, json.dumps(state).encode())

    async def finish(self, spec: ContainerSpec, container_id: str) -> None:
        await self._run_hooks(spec, container_id, HOOKS_AFTER, "stopped")


async def _run_hook(hook: Hook, state: bytes) -> None:
    process = await asyncio.create_subprocess_exec(
        hook.path,
        *hook.args[1:],
        env=dict(item.split("=", 1) for item in hook.env if "=" in item),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        _, errors = await asyncio.wait_for(process.communicate(state), hook.timeout)
    except TimeoutError as error:
        process.kill()
        await process.wait()
        raise StartFailed(f"hook {hook.hook_name} {hook.path} took longer than {hook.timeout} s") from error
    if process.returncode:
        text = errors.decode(errors="replace").strip()
        raise StartFailed(f"hook {hook.hook_name} {hook.path} ended with {process.returncode}: {text}")


class _Process:
    def __init__(
        self, runtime: ProcessRuntime, spec: ContainerSpec, container_id: str, process: asyncio.subprocess.Process
    ) -> None:
        self.id = container_id
        self._runtime = runtime
        self._spec = spec
        self._process = process

    async def wait(self) -> int:
        code = await self._process.wait()
        await self._runtime.finish(self._spec, self.id)
        return 128 - code if code < 0 else code

    async def stop(self, grace_seconds: float) -> None:
        self._signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(asyncio.shield(self._process.wait()), grace_seconds)
        except TimeoutError:
            self._signal(signal.SIGKILL)
            await self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        """To the whole session, so that children of a shell end too."""
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            return
