"""Who runs a cluster in a directory: one at a time, and never a stranger with the same number."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from dray.cluster.datadir import AlreadyUp, UpRecord, hold_directory, read_record, remove_record, write_record
from dray.node.shim import process_birth

RECORD = UpRecord(
    pid=os.getpid(),
    born=process_birth(os.getpid()),
    address="https://127.0.0.1:1",
    kubeconfig="/k",
    model="ring",
    nodes=1,
    runtime="process",
    started_at="2026-01-01T00:00:00Z",
)


def test_a_record_is_read_as_it_was_written_and_gone_when_removed(tmp_path: Path) -> None:
    write_record(tmp_path, RECORD)
    assert read_record(tmp_path) == RECORD
    remove_record(tmp_path)
    assert read_record(tmp_path) is None


def test_a_process_with_the_same_number_that_started_later_is_another_one() -> None:
    assert RECORD.is_alive
    assert not replace(RECORD, born="1").is_alive
    assert not replace(RECORD, pid=2**22 + 1).is_alive


def test_only_one_cluster_can_use_a_directory(tmp_path: Path) -> None:
    with hold_directory(tmp_path), pytest.raises(AlreadyUp, match="`dray down` stops it"), hold_directory(tmp_path):
        raise AssertionError("two clusters in one directory")
    with hold_directory(tmp_path):
        pass
