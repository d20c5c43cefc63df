"""The driver author's commands as processes: a new project and its own tests, and checks of good and bad drivers."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.plain_driver import NAME
from tests.e2e.servers import serving

ROOT = Path(__file__).parents[2]
PLACES = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/demo-gpu/serviceaccounts",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
}


def run(*arguments: str, cwd: Path = ROOT, **env: str) -> subprocess.CompletedProcess[str]:
    """A command, with this environment's Python first on the path, as if it was activated."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MAKE", "KUBE"))}
    return subprocess.run(
        arguments, cwd=cwd, env={**plain, "PATH": path, **env}, capture_output=True, text=True, timeout=120
    )


def wait_for(socket: Path, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not socket.exists():
        assert time.monotonic() < end, f"no socket {socket}"
        time.sleep(0.05)


@pytest.fixture
def folder() -> Iterator[Path]:
    """With a short path, since sockets are made below."""
    with tempfile.TemporaryDirectory(prefix="dray-", dir="/tmp") as name:
        yield Path(name)


# A new project


def test_a_new_project_passes_its_own_tests_and_checks(folder: Path) -> None:
    made = run("dray", "driver", "new", "demo-gpu", cwd=folder)
    assert made.returncode == 0, made.stderr
    assert "make test" in made.stdout
    missing = run("make", "test", "PYTHON=false", cwd=folder / "demo-gpu")
    assert missing.returncode == 2
    assert "There is no dray here. Install it (pip install dray)" in missing.stderr
    tested = run("make", "test", cwd=folder / "demo-gpu")
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "OK" in tested.stderr.splitlines()
    checked = run("make", "check", cwd=folder / "demo-gpu")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "11 checks: 11 passed" in checked.stdout


@pytest.mark.slow
def test_a_new_project_works_with_an_installed_wheel(folder: Path) -> None:
    """A new environment that has dray from a wheel; what dray needs comes from this environment."""
    built = run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", str(folder), str(ROOT))
    assert built.returncode == 0, built.stderr
    (wheel,) = folder.glob("dray-*.whl")
    venv.create(folder / "env", with_pip=False)
    places = folder / "env" / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    (places / "needs.pth").write_text(sysconfig.get_path("purelib"))
    installed = run(sys.executable, "-m", "pip", "--python", str(folder / "env"), "install", "--no-deps", str(wheel))
    assert installed.returncode == 0, installed.stderr
    path = f"{folder / 'env' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    where = run("python3", "-c", "import dray; print(dray.__file__)", cwd=folder, PATH=path)
    assert where.stdout.startswith(str(places))
    assert run("dray", "driver", "new", "demo-gpu", cwd=folder, PATH=path).returncode == 0
    tested = run("make", "test", cwd=folder / "demo-gpu", PATH=path)
    assert tested.returncode == 0, tested.stdout + tested.stderr


@pytest.mark.slow
def test_the_permissions_of_a_new_project_are_enough(folder: Path) -> None:
    """The driver as the service account of its DaemonSet, on an API server that asks for permissions."""
    run("dray", "driver", "new", "demo-gpu", cwd=folder)
    manifests = list(yaml.safe_load_all((folder / "demo-gpu" / "deploy" / "daemonset.yaml").read_text()))
    with serving(folder / "api") as server:
        admin = server.admin
        admin.expect(201, "POST", "/api/v1/nodes", {"metadata": {"name": "node-1"}})
        for manifest in manifests:
            if manifest["kind"] in PLACES:
                admin.expect(201, "POST", PLACES[manifest["kind"]], manifest)
        token = admin.expect(201, "POST", f"{PLACES['ServiceAccount']}/demo-gpu/token", {}).json["status"]["token"]
        admin.close()
        config = yaml.safe_load((server.data_dir / "admin.kubeconfig").read_text())
        config["users"][0]["user"] = {"token": token}
        (folder / "driver.kubeconfig").write_text(yaml.safe_dump(config))
        driver = subprocess.Popen(
            (sys.executable, "-m", "demo_gpu", "--node-name", "node-1", "--root", folder / "node"),
            env={**os.environ, "PYTHONPATH": "src", "KUBECONFIG": str(folder / "driver.kubeconfig")},
            cwd=folder / "demo-gpu",
        )
        try:
            socket = folder / "node" / "plugins_registry" / "demo-gpu.example.com-reg.sock"
            wait_for(socket)
            checked = run(
                "dray", "driver", "check", str(socket), "--kubeconfig", str(server.data_dir / "admin.kubeconfig")
            )
        finally:
            driver.terminate()
            driver.wait()
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "11 checks: 9 passed, 2 skipped" in checked.stdout


# Checks


def check(folder: Path, flaw: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = f"{sys.executable} -m tests.e2e.plain_driver {flaw} --root {folder}"
    socket = folder / f"{NAME}-reg.sock"
    return run("dray", "driver", "check", str(socket), "--command", command, *options)


def outcomes(output: str) -> dict[str, str]:
    lines = (line.split(maxsplit=1) for line in output.splitlines() if line.startswith(("passed", "failed", "skipped")))
    return {name: outcome for outcome, name in lines}


def test_a_driver_written_without_the_sdk_passes_the_checks(folder: Path) -> None:
    checked = check(folder, "none")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert set(outcomes(checked.stdout).values()) == {"passed"}
    assert "11 checks: 11 passed" in checked.stdout


def test_a_driver_that_prepares_anew_each_time_and_ignores_uids_is_found_out(folder: Path) -> None:
    checked = check(folder, "careless")
    assert checked.returncode == 1
    failed = [name for name, outcome in outcomes(checked.stdout).items() if outcome == "failed"]
    assert failed[:2] == ["prepare twice", "prepare with the wrong UID"]
    assert "the second answer differs: node-1/device-0 (plain.example.com/device=" in checked.stdout
    assert "it was prepared; it must be refused" in checked.stdout


@pytest.mark.slow
def test_a_driver_that_hangs_is_not_waited_for_forever(folder: Path) -> None:
    checked = check(folder, "hangs", "--timeout", "1")
    assert checked.returncode == 1
    assert "no answer within 1s" in checked.stdout
    assert outcomes(checked.stdout)["unprepare of an unknown claim"] == "passed"


def test_a_driver_that_crashes_ends_the_checks(folder: Path) -> None:
    checked = check(folder, "crashes")
    assert checked.returncode == 1
    assert "has ended with status 7" in checked.stdout
    assert "3 checks: 2 passed, 1 failed" in checked.stdout
