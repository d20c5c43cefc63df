"""Hooks of the Container Device Interface: programs that run around a container, told about it on standard input."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from dray.api.cdi import Hook

HOOKS = "hooks.json"
BEFORE = ("prestart", "createRuntime", "createContainer", "startContainer")
AFTER_START = ("poststart",)
AFTER = ("poststop",)


class HookFailed(Exception):
    """The text names the hook and what it said."""


class ContainerHooks(msgspec.Struct, frozen=True):
    """The hooks of one container, and what they are told. Kept on disk, for the agent that sees the container end."""

    hooks: tuple[Hook, ...]
    state: dict[str, Any]

    @classmethod
    def of(
        cls, hooks: Iterable[Hook], *, container_id: str, bundle: Path, annotations: Mapping[str, str]
    ) -> ContainerHooks:
        state = {"ociVersion": "1.0.2", "id": container_id, "bundle": str(bundle), "annotations": dict(annotations)}
        return cls(tuple(hooks), state)

    @classmethod
    def load(cls, directory: Path) -> ContainerHooks:
        try:
            return msgspec.json.decode((directory / HOOKS).read_bytes(), type=cls)
        except FileNotFoundError:
            return cls((), {})

    def save(self, directory: Path) -> None:
        path = directory / HOOKS
        if self.hooks:
            path.write_bytes(msgspec.json.encode(self))
        else:
            path.unlink(missing_ok=True)

    async def run(self, names: Iterable[str], *, status: str, pid: int = 0) -> None:
        """Run the hooks of these names, in order. Raises HookFailed, OSError."""
        state = json.dumps({**self.state, "status": status, "pid": pid}).encode()
        for name in names:
            for hook in self.hooks:
                if hook.hook_name == name:
                    await _run(hook, state)


async def _run(hook: Hook, state: bytes) -> None:
    process = await asyncio.create_subprocess_exec(
        hook.path,
        *hook.args[1:],  # the first is the program's own name, as in execve
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
        raise HookFailed(f"hook {hook.hook_name} {hook.path} took longer than {hook.timeout} s") from error
    if process.returncode:
        text = errors.decode(errors="replace").strip()
        raise HookFailed(f"hook {hook.hook_name} {hook.path} ended with {process.returncode}: {text}")
