"""Writes a pod's status while the pod lives: the newest state, however many changes came while the last was written."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from dray.api.errors import Conflict, NotFound, StatusError
from dray.api.meta import Json
from dray.api.resources import PODS
from dray.api.times import format_time
from dray.node.statuses import ContainerRecord, merge_conditions, pod_status
from dray.runtime.client import Client
from dray.runtime.clock import Clock

log = logging.getLogger(__name__)

FIRST_RETRY = 0.2
LONGEST_RETRY = 10.0


class PodReporter:
    """`gone` is called when it turns out that the pod exists no more."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        obj: Json,
        records: Iterable[ContainerRecord],
        host_ip: str,
        *,
        gone: Callable[[], None],
    ) -> None:
        self._client = client
        self._clock = clock
        self._records = list(records)
        self._host_ip = host_ip
        self._gone = gone
        metadata, status = obj["metadata"], obj.get("status") or {}
        self._name, self._namespace, self._uid = metadata["name"], metadata["namespace"], metadata["uid"]
        self._started_at = status.get("startTime") or format_time(clock.now())
        self._conditions: list[Json] = status.get("conditions") or []
        self._written: Json | None = None
        self._changed = asyncio.Event()
        self._lock = asyncio.Lock()
        self._exists = True
        self.phase = status.get("phase") or "Pending"

    def changed(self) -> None:
        self._changed.set()

    async def run(self) -> None:
        """Write changes until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self._write_until_done()

    async def finish(self, phase: str) -> None:
        """Nothing of the pod runs or is held any more: write the last state."""
        self.phase = phase
        await self._write_until_done()

    async def remove(self) -> None:
        """Let the deleted pod go. Raises StatusError."""
        try:
            await self._client.delete(PODS, self._name, self._namespace, uid=self._uid, grace_period_seconds=0)
        except NotFound:
            return
        except Conflict:
            return  # another pod has the name by now

    async def _write_until_done(self) -> None:
        delay = FIRST_RETRY
        while self._exists:
            try:
                async with self._lock:
                    await self._write()
                return
            except (StatusError, OSError) as error:
                log.warning("status of pod %s/%s: %s; again in %.1fs", self._namespace, self._name, error, delay)
            await self._clock.sleep(delay)
            delay = min(delay * 2, LONGEST_RETRY)

    async def _write(self) -> None:
        status = pod_status(
            self._records,
            phase=self.phase,
            started_at=self._started_at,
            now=format_time(self._clock.now()),
            host_ip=self._host_ip,
        )
        status["conditions"] = merge_conditions(self._conditions, status["conditions"])
        if status == self._written:
            return
        patch: Json = {"metadata": {"uid": self._uid}, "status": status}
        try:
            pod = await self._client.patch(PODS, self._name, patch, self._namespace, subresource="status")
        except NotFound:
            self._vanish()
            return
        except Conflict:
            if await self._is_mine():
                raise
            self._vanish()
            return
        self._conditions = (pod.get("status") or {}).get("conditions") or []
        self._written = status

    async def _is_mine(self) -> bool:
        """Whether the pod of this name is still the same one."""
        try:
            pod = await self._client.get(PODS, self._name, self._namespace)
        except NotFound:
            return False
        return bool(pod["metadata"]["uid"] == self._uid)

    def _vanish(self) -> None:
        self._exists = False
        self._gone()
