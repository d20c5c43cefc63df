"""What this node holds prepared, on disk: claims, the pods that use them, the CDI devices they got.

A claim is recorded before its drivers are called and forgotten after they let go, so that a restarted agent never
loses track of something that may be prepared.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from dray.runtime.files import remove_durably, write_atomically


class HeldDevice(msgspec.Struct, frozen=True, kw_only=True):
    driver: str
    requests: tuple[str, ...]
    pool: str
    device: str
    cdi_device_ids: tuple[str, ...] = ()


class HeldClaim(msgspec.Struct, frozen=True, kw_only=True):
    namespace: str
    name: str
    uid: str
    pods: frozenset[str]
    """UIDs of the pods on this node that use it."""
    drivers: tuple[str, ...]
    """Drivers that were, or may have been, asked to prepare it."""
    prepared: frozenset[str] = frozenset()
    """Drivers that said they did."""
    devices: tuple[HeldDevice, ...] = ()

    @property
    def is_prepared(self) -> bool:
        return self.prepared.issuperset(self.drivers)

    def cdi_device_ids(self, request: str = "") -> list[str]:
        """Of one request, or of all if none is named."""
        return [
            cdi_id
            for device in self.devices
            if not request or not device.requests or request in device.requests
            for cdi_id in device.cdi_device_ids
        ]


class DamagedCheckpoint(Exception):
    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"checkpoint {path} can't be read ({reason}); drain the node before you remove the file")
        self.path = path


class Checkpoint:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._claims: dict[str, HeldClaim] = {}
        for path in sorted(directory.glob("*.json")):
            try:
                claim = msgspec.json.decode(path.read_bytes(), type=HeldClaim)
            except msgspec.MsgspecError as error:
                raise DamagedCheckpoint(path, str(error)) from error
            self._claims[claim.uid] = claim

    def get(self, uid: str) -> HeldClaim | None:
        return self._claims.get(uid)

    @property
    def claims(self) -> list[HeldClaim]:
        return list(self._claims.values())

    def used_by(self, pod_uid: str) -> list[HeldClaim]:
        return [claim for claim in self._claims.values() if pod_uid in claim.pods]

    def put(self, claim: HeldClaim) -> None:
        if self._claims.get(claim.uid) == claim:
            return
        write_atomically(self._path(claim.uid), msgspec.json.encode(claim))
        self._claims[claim.uid] = claim

    def remove(self, uid: str) -> None:
        remove_durably(self._path(uid))
        self._claims.pop(uid, None)

    def _path(self, uid: str) -> Path:
        return self._directory / f"{uid}.json"
