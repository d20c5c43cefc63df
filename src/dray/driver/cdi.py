"""The CDI files of a driver: what its devices change in a container, for container runtimes to read.

One file per claim, `<vendor>-<class>-<claim uid>.json`, with one CDI device per device of the claim. Files are
written to a temporary name and renamed, so that a runtime never sees half a file, and removed with the claim.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from dray.api.cdi import CDI_VERSION, CdiDevice, CdiSpec, ContainerEdits
from dray.runtime.files import write_atomically


class CdiFiles:
    """The CDI files of one driver in one directory."""

    def __init__(self, directory: Path, *, vendor: str, device_class: str = "device") -> None:
        self._directory = directory
        self._vendor = vendor
        self._class = device_class

    @property
    def kind(self) -> str:
        return f"{self._vendor}/{self._class}"

    def path(self, claim_uid: str) -> Path:
        return self._directory / f"{self._vendor}-{self._class}-{claim_uid}.json"

    def qualified_name(self, device: str) -> str:
        return f"{self.kind}={device}"

    def write(self, claim_uid: str, devices: dict[str, ContainerEdits]) -> dict[str, str]:
        """Write the claim's file; returns the qualified CDI name of each device."""
        spec = CdiSpec(
            cdi_version=CDI_VERSION,
            kind=self.kind,
            devices=tuple(CdiDevice(name=name, container_edits=edits) for name, edits in sorted(devices.items())),
        )
        self._directory.mkdir(parents=True, exist_ok=True)
        # Not durable: such files describe what is set up, and after a start of the machine nothing is.
        write_atomically(self.path(claim_uid), msgspec.json.format(msgspec.json.encode(spec)), durable=False)
        return {name: self.qualified_name(name) for name in devices}

    def remove(self, claim_uid: str) -> None:
        self.path(claim_uid).unlink(missing_ok=True)

    def claim_uids(self) -> set[str]:
        """The claims that have a file, for removing those that nobody knows any more."""
        prefix = f"{self._vendor}-{self._class}-"
        return {path.stem.removeprefix(prefix) for path in self._directory.glob(f"{prefix}*.json")}
