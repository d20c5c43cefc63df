"""The checkpoint: what was prepared is known again after a restart."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from dray.driver.base import ClaimRef
from dray.driver.checkpoint import Checkpoint, DamagedCheckpoint, PreparedDevice, Record

CLAIM = ClaimRef("default", "c", "uid-1")


def test_records_survive_a_restart(tmp_path: Path) -> None:
    record = Record(
        claim=CLAIM, state="prepared", devices=(PreparedDevice(requests=("gpu",), pool="p", device="gpu-0"),)
    )
    Checkpoint(tmp_path).put(record)
    assert Checkpoint(tmp_path).get("uid-1") == record


def test_a_removed_record_stays_removed(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path)
    checkpoint.put(Record(claim=CLAIM, state="preparing"))
    checkpoint.remove("uid-1")
    assert len(Checkpoint(tmp_path)) == 0


def test_a_damaged_file_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "uid-9.json").write_text('{"claim": ')
    with pytest.raises(DamagedCheckpoint, match=r"uid-9\.json"):
        Checkpoint(tmp_path)


async def test_only_one_holds_a_claims_lock_and_nothing_is_left_of_it(tmp_path: Path) -> None:
    first, second = Checkpoint(tmp_path), Checkpoint(tmp_path)
    order: list[str] = []

    async def work(checkpoint: Checkpoint, name: str) -> None:
        async with checkpoint.lock("uid-1"):
            order.append(f"{name} in")
            await asyncio.sleep(0.03)
            order.append(f"{name} out")

    await asyncio.gather(work(first, "a"), work(second, "b"), work(first, "c"))
    assert [text.split()[1] for text in order] == ["in", "out"] * 3
    assert os.listdir(tmp_path) == []
