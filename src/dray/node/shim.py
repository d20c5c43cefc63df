"""Stands between the agent and one container process, so that the process outlives the agent and its end is known.

Run as a script, once per attempt to run a container: `python -I -S shim.py DIRECTORY`, with the description on
standard input. It needs nothing but the standard library, and little of that, to start quickly. In the directory:

    lock          held while the container runs; whoever doesn't get it knows that it runs
    running.json  the process: written before it starts, so that none is ever unknown
    ended.json    how it ended

The keeper detaches itself: whoever started it sees that process end at once, gets one line of answer on the pipe that
is the keeper's standard output, and the end of that pipe when the container has ended.

An attempt runs at most once: the lock rules out two at a time, and one that has ended is not started again.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
import time
from typing import Any

LOCK, RUNNING, ENDED = "lock", "running.json", "ended.json"
EXEC_FAILED = 127


def main(directory: str) -> None:
    try:
        request = json.load(sys.stdin)
    except ValueError:
        return None  # the agent died while it wrote: it will ask again
    if os.fork():
        os._exit(0)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the container is asked to end, not its keeper
    lock = os.open(f"{directory}/{LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return _answer({"busy": True})
    if _last_attempt(f"{directory}/{ENDED}") >= request["attempt"]:
        return _answer({"busy": True})
    _run(directory, request)
    return None


def _run(directory: str, request: dict[str, Any]) -> None:
    go_reader, go_writer = os.pipe()
    failure_reader, failure_writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(go_writer)
        _become(request, go_reader, failure_writer)
    os.close(failure_writer)
    record = {
        "id": request["id"],
        "attempt": request["attempt"],
        "pid": pid,
        "born": process_birth(pid),
        "startedAt": _now(),
    }
    _write(directory, RUNNING, record)
    os.write(go_writer, b"!")
    failure = os.read(failure_reader, 4096)  # empty once the program runs
    if failure:
        os.waitpid(pid, 0)
        os.unlink(f"{directory}/{RUNNING}")
        return _answer({"error": failure.decode(errors="replace")})
    _answer(record)
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    _end_group(pid)
    _write(directory, ENDED, {**record, "exitCode": 128 - code if code < 0 else code, "finishedAt": _now()})
    return None


def _become(request: dict[str, Any], go: int, failure: int) -> None:
    """In the child: wait until it is recorded, then turn into the program."""
    try:
        os.setsid()
        if not os.read(go, 1):
            os._exit(EXEC_FAILED)  # the keeper died before it could record us
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.chdir(request["directory"])
        os.execvpe(request["command"][0], request["command"], request["env"])
    except OSError as error:
        os.write(failure, f"{error.filename or request['command'][0]}: {error.strerror}".encode())
    finally:
        os._exit(EXEC_FAILED)


def _end_group(pid: int) -> None:
    """What the process left behind ends with it, as in a container."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def process_birth(pid: int) -> str:
    """When a process started, to tell it from a later one with the same number; empty where it can't be known."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def _last_attempt(path: str) -> int:
    try:
        with open(path, encoding="utf-8") as file:
            return int(json.load(file)["attempt"])
    except FileNotFoundError:
        return -1


def _write(directory: str, name: str, content: dict[str, Any]) -> None:
    temporary = f"{directory}/.{name}.{os.getpid()}"
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, f"{directory}/{name}")


def _answer(content: dict[str, Any]) -> None:
    """To the agent, if it still listens."""
    try:
        os.write(1, json.dumps(content).encode() + b"\n")
    except OSError:
        return


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


if __name__ == "__main__":
    main(sys.argv[1])
