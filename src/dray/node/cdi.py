"""Finds the edits behind CDI device names, as container runtimes do."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

import msgspec
import yaml

from dray.api.cdi import CdiSpec, ContainerEdits

log = logging.getLogger(__name__)


class CdiDeviceMissing(Exception):
    def __init__(self, names: list[str], directories: Iterable[Path]) -> None:
        places = ", ".join(map(str, directories))
        super().__init__(f"unresolvable CDI devices {', '.join(names)} (looked in {places})")
        self.names = names


class CdiRegistry:
    """Later directories win over earlier ones, as the CDI specification has it."""

    def __init__(self, *directories: Path) -> None:
        self._directories = directories

    def resolve(self, names: Iterable[str]) -> ContainerEdits:
        """The edits of all named devices, and of the specs that they stand in, merged in order."""
        wanted = list(dict.fromkeys(names))
        found = self._read({name.partition("=")[0] for name in wanted})
        if missing := [name for name in wanted if name not in found]:
            raise CdiDeviceMissing(missing, self._directories)
        return merge_edits(found[name] for name in wanted)

    def _read(self, kinds: set[str]) -> dict[str, ContainerEdits]:
        found: dict[str, ContainerEdits] = {}
        for directory in self._directories:
            for path in sorted((*directory.glob("*.json"), *directory.glob("*.yaml"))):
                spec = _read_spec(path)
                if spec is not None and spec.kind in kinds:
                    for device in spec.devices:
                        found[f"{spec.kind}={device.name}"] = merge_edits(
                            (spec.container_edits, device.container_edits)
                        )
        return found


def _read_spec(path: Path) -> CdiSpec | None:
    """None if it is gone meanwhile, or broken: that is its writer's affair and must not stop other devices."""
    try:
        content = path.read_bytes()
        if path.suffix == ".yaml":
            return msgspec.convert(yaml.load(content, getattr(yaml, "CSafeLoader", yaml.SafeLoader)), CdiSpec)
        return msgspec.json.decode(content, type=CdiSpec)
    except FileNotFoundError:
        return None
    except (msgspec.MsgspecError, yaml.YAMLError) as error:
        log.warning("CDI file %s is ignored: %s", path, error)
        return None


def merge_edits(parts: Iterable[ContainerEdits]) -> ContainerEdits:
    edits = list(parts)
    return ContainerEdits(
        env=tuple(item for part in edits for item in part.env),
        device_nodes=tuple(item for part in edits for item in part.device_nodes),
        mounts=tuple(item for part in edits for item in part.mounts),
        hooks=tuple(item for part in edits for item in part.hooks),
    )
