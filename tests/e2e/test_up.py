"""`dray up`, `status`, `logs`, `down` and `demo` as a user types them: every command is a process of its own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dray.cli.main import app
from tests.e2e.servers import Client, Json

EXAMPLES = Path(__file__).parents[2] / "examples"
PARTIAL_GPU = ("stories/partial-gpu/class.yaml", "stories/partial-gpu/pod.yaml")
SECONDS = 60.0


class Shell:
    """A user with a home directory of their own, in which they are."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.data_dir = home / ".dray"
        hidden = ("KUBECONFIG", "KUBERNETES_SERVICE_HOST")
        self._environ = {name: value for name, value in os.environ.items() if name not in hidden}
        self._environ |= {"HOME": str(home), "COLUMNS": "200"}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """As in the foreground of a terminal: with a process group that Ctrl-C goes to."""
        return subprocess.Popen(
            [sys.executable, "-m", "dray", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.home,
            env=self._environ,
            start_new_session=True,
        )

    def run(self, *arguments: str, status: int = 0) -> str:
        """What the command said: its output if that status is success, else its error."""
        process = self.start(*arguments)
        output, errors = process.communicate(timeout=SECONDS)
        assert process.returncode == status, f"dray {' '.join(arguments)}: {process.returncode}\n{output}\n{errors}"
        return errors if status else output

    def wait(self, condition: Callable[[], object], what: str) -> None:
        end = time.monotonic() + SECONDS
        while not condition():
            assert time.monotonic() < end, f"not within {SECONDS:g}s: {what}"
            time.sleep(0.1)  # other processes can't set an event here

    def apply(self, *files: str) -> None:
        """Apply manifests of the examples; until their pod runs."""
        self.run("apply", *(word for file in files for word in ("-f", str(EXAMPLES / file))))
        (pod,) = self.get("v1", "pods")["items"]
        self.wait(lambda: self.container(pod["metadata"]["name"]).get("started"), "the pod runs")

    def get(self, version: str, plural: str, name: str = "") -> Json:
        """Asked of the API directly, because a command takes a while."""
        prefix = "/api" if version == "v1" else "/apis"
        client = Client(self.data_dir / "admin.kubeconfig")
        try:
            return client.expect(200, "GET", f"{prefix}/{version}/namespaces/default/{plural}/{name}").json
        finally:
            client.close()

    def container(self, pod: str) -> Json:
        """The status of the pod's first container."""
        status = self.get("v1", "pods", pod)["status"]
        found: Json = (status.get("containerStatuses") or [{}])[0]
        return found

    @property
    def running(self) -> list[str]:
        """Command lines of all that lives in this home: clusters, their parts, their containers."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                environ = (process / "environ").read_bytes().split(b"\0")
                if f"HOME={self.home}".encode() in environ:
                    found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                continue  # it has ended, or is somebody else's
        return found

    def wait_quiet(self) -> None:
        self.wait(lambda: not self.running, "nothing runs any more")


@pytest.fixture
def shell() -> Iterator[Shell]:
    home = Path(tempfile.mkdtemp(prefix="dray-"))  # short, because sockets are below
    shell = Shell(home)
    yield shell
    if shell.running:
        shell.run("down")
    shell.wait_quiet()
    shutil.rmtree(home)


def read_until(process: subprocess.Popen[str], text: str) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if text in line:
            return
    raise AssertionError(f"it ended without saying {text!r}: {process.communicate()}")


# The life of a cluster


def test_a_cluster_in_the_background_runs_pods_and_keeps_its_state(shell: Shell) -> None:
    shutil.copy(EXAMPLES / "stories" / "aligned-devices" / "devices.yaml", shell.home / "my-model.yaml")
    up = ("up", "--detach", "--model", "my-model.yaml")
    assert f"export KUBECONFIG={shell.data_dir}/admin.kubeconfig" in shell.run(*up)
    assert "1 node · 5 devices: 5 free · 0 claims · pods: none" in shell.run("status")

    shell.apply("stories/aligned-devices/claim.yaml", "stories/aligned-devices/pod.yaml")
    assert "2 free, 3 used" in shell.run("status")
    shell.wait(lambda: "DRA_GPU_0=gpu.example.com/node-1/gpu-1" in shell.run("logs", "aligned"), "it says its device")
    claim = shell.get("resource.k8s.io/v1", "resourceclaims", "aligned-devices")["metadata"]["uid"]
    assert "already (process" in shell.run(*up, status=1)

    assert "Stopped the cluster" in shell.run("down")
    shell.wait_quiet()
    assert "`dray up` starts one" in shell.run("status", status=1)

    shell.run(*up)
    assert shell.get("resource.k8s.io/v1", "resourceclaims", "aligned-devices")["metadata"]["uid"] == claim
    shell.wait(lambda: shell.container("aligned")["restartCount"] == 1, "the pod goes on")
    assert f"Removed {shell.data_dir}" in shell.run("down", "--purge")
    assert not shell.data_dir.exists()
    shell.wait_quiet()


def test_a_cluster_of_processes_runs_pods_and_what_it_leaves_when_killed_is_ended(shell: Shell) -> None:
    up = shell.start("up", "--processes", "--model", "a100-8", "--nodes", "1")
    read_until(up, "Ctrl-C stops it.")
    shell.apply("first-pod.yaml")
    shell.wait(lambda: "DRA_NIC_0=dra.net/node-1/rdma-0" in shell.run("logs", "first"), "it says its device")
    up.kill()
    up.wait()
    assert "`dray down` ends them" in shell.run("up", "--detach", status=1)
    assert "Ended 4 processes" in shell.run("down")
    shell.wait_quiet()


def test_ctrl_c_ends_a_cluster_with_all_that_it_started(shell: Shell) -> None:
    check_that_it_ends_after(signal.SIGINT, shell)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "mode"), [(signal.SIGHUP, ()), (signal.SIGINT, ("--processes",))])
def test_so_does_the_end_of_the_terminal_and_so_do_processes(
    number: signal.Signals, mode: tuple[str, ...], shell: Shell
) -> None:
    check_that_it_ends_after(number, shell, *mode)


def check_that_it_ends_after(number: signal.Signals, shell: Shell, *mode: str) -> None:
    up = shell.start("up", "--model", "acme", "--nodes", "1", *mode)
    read_until(up, "Ctrl-C stops it.")
    shell.apply(*PARTIAL_GPU)
    os.killpg(up.pid, number)
    output, errors = up.communicate(timeout=SECONDS)
    assert (up.returncode, output, errors) == (0, "Stopping; the state is kept.\n", "")
    shell.wait_quiet()


def test_an_interrupt_while_it_starts_ends_it_too(shell: Shell) -> None:
    up = shell.start("up", "--model", "acme", "--processes")
    read_until(up, "Starting 3 nodes of model acme")
    os.killpg(up.pid, signal.SIGINT)
    assert up.communicate(timeout=SECONDS) == ("Stopped before it was up.\n", "")
    assert up.returncode == 0
    shell.wait_quiet()


# What goes wrong


BAD_OPTIONS = [
    ("up --model nope", 2, "--model: there is no model 'nope', and no such file. Models: a100-8, h100-8"),
    ("up --detach --model nope", 2, "--model: there is no model 'nope', and no such file. Models: a100-8, h100-8"),
    ("up --model odd.yaml", 2, "--model: odd.yaml: ResourceSlice s: spec.devices[0].name: Invalid value"),
    ("up --nodes 0", 2, "Invalid value for '--nodes'"),
    ("up --image-dir nowhere", 2, "--image-dir: nowhere is not a directory"),
    ("up --driver nope:Driver", 2, "driver nope:Driver: No module named 'nope'"),
    ("up --feature-gates Nope=true", 2, "--feature-gates: unknown feature gate 'Nope'"),
    ("up --data-dir odd.yaml", 1, "--data-dir: {home}/odd.yaml is not a directory"),
    ("up --detach --data-dir odd.yaml", 1, "--data-dir: {home}/odd.yaml is not a directory"),
    ("node n --model nope", 2, "--model: there is no model 'nope', and no such file. Models: a100-8, h100-8"),
    ("node n --label nope", 2, "--label nope: must be KEY=VALUE"),
    ("node n --address nope", 2, "--address: 'nope' does not appear to be an IPv4 or IPv6 address"),
    ("node n --image-dir nowhere", 2, "--image-dir: nowhere is not a directory"),
    ("status --data-dir nowhere", 1, "--data-dir: no cluster was ever up in nowhere"),
    ("logs pod --data-dir nowhere", 1, "--data-dir: no cluster was ever up in nowhere"),
    ("logs pod", 1, "no cluster given: `dray up` starts one here"),
    ("down --data-dir . --purge", 1, "doesn't look like a cluster's directory; it is left alone"),
    ("demo nope", 2, "there is no story 'nope'. Stories: aligned-devices,"),
]


@pytest.mark.parametrize(("command", "status", "said"), BAD_OPTIONS)
def test_what_cannot_be_done_is_said_in_one_line(
    command: str, status: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("dray.cli.status.DEFAULT", tmp_path / ".dray")
    (tmp_path / "odd.yaml").write_text(
        "{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: s},"
        " spec: {driver: d.example.com, nodeName: n, pool: {name: n}, devices: [{name: A_b}]}}"
    )
    done = CliRunner().invoke(app, command.split())
    assert done.exit_code == status
    assert said.format(home=tmp_path) in done.stderr
    if "Usage:" not in done.stderr:  # that of a bad value is drawn in a frame
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("up --detach --port {port}", "--port: can't listen on 127.0.0.1 port {port}: Address already in use"),
        ("status", "no cluster given: `dray up` starts one here"),
        *(
            pytest.param(command, said, marks=pytest.mark.slow)
            for command, said in (
                ("up --processes --port {port}", "can't listen on 127.0.0.1 port {port}: Address already in use"),
                ("up --data-dir {long}", "Choose a directory with a shorter path."),
            )
        ),
    ],
)
def test_so_is_what_turns_out_only_when_it_starts(command: str, said: str, shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        words = {"port": taken.getsockname()[1], "long": "x" * 90}
        errors = shell.run(*command.format(**words).split(), status=1)
    assert said.format(**words) in errors
    assert errors.count("\n") == 1
