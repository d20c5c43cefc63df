"""The `dray` program as a shell sees it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dray.cli.exits import UNUSABLE

PROGRAM = [sys.executable, "-c", "from dray.cli.main import main; main()"]
EXAMPLES = str(Path(__file__).resolve().parents[3] / "examples" / "seeds" / "kep-4381")
CONVERT = [*PROGRAM, "convert", "-f", EXAMPLES, "--to", "v1"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_told_in_one_line() -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(CONVERT, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (UNUSABLE, "dray: No space left on device\n")


def test_a_reader_that_has_seen_enough_is_no_error_to_tell_of() -> None:
    with subprocess.Popen(CONVERT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert running.stderr.read() == ""


def _listen_to_interrupts() -> None:
    """Tests that run in the background of a shell inherit that interrupts are ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_an_interrupt_ends_a_command_without_a_word() -> None:
    command = [*PROGRAM, "validate", "-f", "-"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, preexec_fn=_listen_to_interrupts) as running:
        assert running.stdin is not None
        # More than a pipe holds: once it is written, the command has started to read.
        running.stdin.write(b"#" * 200_000)
        running.stdin.flush()
        running.send_signal(signal.SIGINT)
        output = running.communicate(timeout=30)
    assert (running.returncode, output) == (130, (b"", b""))
