"""Claims that were written and whose change wasn't seen in the cluster yet.

A write alone doesn't make devices ours: another scheduler may have written the same devices into another claim a
moment before. When our own write is seen, so was every earlier one (`dray.placement.overlaps`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from dray.api.meta import ObjectKey


class DevicesTaken(Exception):
    """Another scheduler was faster; the text says with what."""


@dataclass(frozen=True)
class Expected:
    pod_uid: str
    """For whom the claim gets reserved."""
    node: str | None
    """Where new devices were chosen; None if the claim had its devices before."""
    overlap: asyncio.Future[str | None]


class Confirmations:
    def __init__(self) -> None:
        self._expected: dict[ObjectKey, Expected] = {}

    def get(self, key: ObjectKey) -> Expected | None:
        return self._expected.get(key)

    def expect(self, key: ObjectKey, pod_uid: str, node: str | None) -> None:
        self._expected[key] = Expected(pod_uid, node, asyncio.get_running_loop().create_future())

    def seen(self, key: ObjectKey, overlap: str | None) -> None:
        """The write was seen, or made impossible; `overlap` is what somebody else was faster with."""
        expected = self._expected.get(key)
        if expected is not None and not expected.overlap.done():
            expected.overlap.set_result(overlap)

    async def wait(self, keys: Iterable[ObjectKey]) -> None:
        """Until all were seen. Raises DevicesTaken."""
        for key in keys:
            expected = self._expected.get(key)
            if expected is not None and (overlap := await expected.overlap) is not None:
                raise DevicesTaken(overlap)

    def drop(self, keys: Iterable[ObjectKey]) -> None:
        """They are confirmed, or given up."""
        for key in keys:
            self._expected.pop(key, None)
