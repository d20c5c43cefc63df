"""Who runs a cluster in a directory: one at a time, and never a stranger with the same number."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from dray.cluster.datadir import (
    AlreadyUp,
    ProcessID,
    UnusableDirectory,
    UpRecord,
    check_free,
    find_error,
    find_holder,
    hold_directory,
    read_record,
    remove_record,
    write_record,
)
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
        assert find_holder(tmp_path) == ProcessID.of(os.getpid())
    assert find_holder(tmp_path) is None


def test_what_a_killed_cluster_left_running_stands_in_the_way_of_the_next(tmp_path: Path) -> None:
    write_record(tmp_path, replace(RECORD, pid=2**22 + 1, parts=(ProcessID.of(os.getpid()),)))
    with pytest.raises(AlreadyUp, match="`dray down` ends them"):
        check_free(tmp_path)
    write_record(tmp_path, replace(RECORD, pid=2**22 + 1, parts=(ProcessID(2**22 + 1, ""),)))
    check_free(tmp_path)


def test_a_file_is_no_place_for_a_cluster(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(UnusableDirectory, match=f"^{file} is not a directory$"), hold_directory(file):
        raise AssertionError("a cluster in a file")
    assert read_record(file) is None
    assert find_holder(file) is None
    remove_record(file)


def test_the_end_of_any_process_can_be_waited_for() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        process = ProcessID.of(child.pid)
        assert not process.wait_ended(0)
        process.stop()
        assert process.wait_ended(30)
    assert process.wait_ended(0)


def test_the_error_of_a_program_is_found_among_what_it_logged(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("error: of yesterday\n")
    offset = log.stat().st_size
    assert find_error(log, offset) == ""
    log.write_text("error: of yesterday\nStarting\nerror: no room\nStopped\n")
    assert find_error(log, offset) == "no room"
    assert find_error(tmp_path / "none") == ""
