"""What this node holds prepared, on disk: claims, the pods that use them, the CDI devices they got.

A claim is recorded before its drivers are called and forgotten after they let go, so that a restarted agent never
loses track of something that may be prepared.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from dray.runtime.files import remove_durably, write_atomically


class HeldDevice(msgspec.Struct, frozen=True, kw_only=True):
    driver: str
    requests: tuple[str, ...]
    pool: str
    device: str
    cdi_device_ids: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str, str]:
        return self.driver, self.pool, self.device


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
    allocation: str = ""
    """Identifies what was allocated: a claim may be allocated anew while an old allocation is still prepared."""

    @property
    def is_prepared(self) -> bool:
        return self.prepared.issuperset(self.drivers)

    def iter_devices(self, request: str = "") -> Iterator[HeldDevice]:
        """Of one request, or of all if none is named. Devices that name no request belong to all."""
        for device in self.devices:
            names = {name.partition("/")[0] for name in device.requests}  # subrequests stand for their request
            if not request or not names or request in names:
                yield device

    def cdi_device_ids(self, request: str = "") -> list[str]:
        return [cdi_id for device in self.iter_devices(request) for cdi_id in device.cdi_device_ids]


class DamagedCheckpoint(Exception):
    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"checkpoint {path} can't be read ({reason}); drain the node before you remove the file")
        self.path = path


class Checkpoint:
    """`durable`: kept through a crash of the machine, too; simulated nodes can do without."""

    def __init__(self, directory: Path, *, durable: bool = True) -> None:
        self._directory = directory
        self._durable = durable
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

    def find(self, namespace: str, name: str, pod_uid: str) -> HeldClaim | None:
        """The claim of this name that the pod holds."""
        return next(
            (claim for claim in self.used_by(pod_uid) if (claim.namespace, claim.name) == (namespace, name)), None
        )

    def used_by(self, pod_uid: str) -> list[HeldClaim]:
        return [claim for claim in self._claims.values() if pod_uid in claim.pods]

    def put(self, claim: HeldClaim) -> None:
        if self._claims.get(claim.uid) == claim:
            return
        write_atomically(self._path(claim.uid), msgspec.json.encode(claim), durable=self._durable)
        self._claims[claim.uid] = claim

    def remove(self, uid: str) -> None:
        if self._durable:
            remove_durably(self._path(uid))
        else:
            self._path(uid).unlink(missing_ok=True)
        self._claims.pop(uid, None)

    def _path(self, uid: str) -> Path:
        return self._directory / f"{uid}.json"
