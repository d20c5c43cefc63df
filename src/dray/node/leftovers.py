"""What an earlier agent left on this node for pods that are gone: containers are ended, then claims given back."""

from __future__ import annotations

import asyncio
import logging
import shutil
import signal
from collections.abc import Iterable
from pathlib import Path

from dray.node.checkpoint import Checkpoint
from dray.node.preparation import DriverFailed, Preparation
from dray.node.shims import recover_last, send_signal, wait_ended
from dray.runtime.clock import Clock

log = logging.getLogger(__name__)

FIRST_RETRY = 0.5
LONGEST_RETRY = 30.0
GRACE_SECONDS = 5.0


async def end_containers(pod_directory: Path, grace_seconds: float = GRACE_SECONDS) -> None:
    """End every process that runs for a pod; how each ended stays on disk."""
    await asyncio.gather(*(_end(place, grace_seconds) for place in _folders(pod_directory)))


async def end_all_containers(pods_directory: Path, grace_seconds: float = GRACE_SECONDS) -> None:
    """For a node that is shut down. Its agent must have stopped: it would take this for failures."""
    await asyncio.gather(*(end_containers(place, grace_seconds) for place in _folders(pods_directory)))


def _folders(directory: Path) -> list[Path]:
    return [place for place in directory.glob("*") if place.is_dir()]


async def _end(directory: Path, grace_seconds: float) -> None:
    launched = recover_last(directory)
    if launched is None or launched.exit_code is not None:
        return
    send_signal(launched, signal.SIGTERM)
    try:
        async with asyncio.timeout(grace_seconds):
            await wait_ended(directory, launched)
    except TimeoutError:
        send_signal(launched, signal.SIGKILL)
        await wait_ended(directory, launched)


class Leftovers:
    def __init__(self, clock: Clock, pods_directory: Path, checkpoint: Checkpoint, preparation: Preparation) -> None:
        self._clock = clock
        self._pods_directory = pods_directory
        self._checkpoint = checkpoint
        self._preparation = preparation

    def find(self, present: Iterable[str]) -> set[str]:
        """UIDs of pods that something is left of, though they aren't among those present."""
        running = {place.name for place in _folders(self._pods_directory)}
        holding = {uid for claim in self._checkpoint.claims for uid in claim.pods}
        return (running | holding) - set(present)

    async def clear(self, pod_uid: str) -> None:
        """Until it is done: a claim must not be forgotten because its driver is away."""
        directory = self._pods_directory / pod_uid
        await end_containers(directory)
        delay = FIRST_RETRY
        while True:
            try:
                await self._preparation.release(pod_uid)
                break
            except DriverFailed as error:
                log.warning("claims of the gone pod %s: %s; again in %.1fs", pod_uid, error, delay)
            await self._clock.sleep(delay)
            delay = min(delay * 2, LONGEST_RETRY)
        shutil.rmtree(directory, ignore_errors=True)
