"""Pods as local processes: what they see, how they end, and what a new agent makes of them."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from dray.api.meta import Json
from dray.api.resources import PODS
from dray.cluster.memory import add_allocated_claim
from dray.driver import ContainerEdits, DriverBuilder, Hook, Mount, make_device
from dray.node import containers, plugins, podworker, shims
from dray.node.leftovers import end_containers
from dray.node.logs import LogMissing, LogQuery, read_log
from dray.node.shims import has_ended, launch, recover_last
from dray.testing.waiting import eventually
from tests.integration.nodes import DRIVER, NODE, NodeUnderTest, running_node
from tests.integration.sample_drivers import Gpus


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(podworker, "FIRST_RETRY", 0.02)
    monkeypatch.setattr(plugins, "LOOK_INTERVAL", 0.02)
    monkeypatch.setattr(containers, "FIRST_RESTART", 0.02)


PID = "$$$$"
"""The shell's `$$`, written so that Kubernetes' own expansion leaves it."""


def is_alive(pid: int) -> bool:
    """A process that ended may stay as a zombie until whoever inherits it looks."""
    return stat_of(pid)[0] not in ("Z", "")


def stat_of(pid: int) -> list[str]:
    """State, parent and so on."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):  # it may go between opening and reading
        return [""]


async def read_pid(path: Path) -> int:
    return int(await eventually(lambda: path.exists() and path.read_text().strip(), f"{path.name} is written"))


def ended(pod: Json, container: int = 0) -> Json:
    state: Json = pod["status"]["containerStatuses"][container]["state"]["terminated"]
    return state


# What a container sees


async def test_a_container_finds_its_device_in_variables_and_links_and_hooks_run_around_it(tmp_path: Path) -> None:
    (tmp_path / "device").write_text("I am gpu-0")
    (tmp_path / "hook").write_text(f"#!/bin/sh\ncat >> {tmp_path}/$1\n")
    (tmp_path / "hook").chmod(0o755)
    hook = {"path": str(tmp_path / "hook"), "env": ("PATH=/bin:/usr/bin",)}
    edits = ContainerEdits(
        env=("GPU=gpu-0",),
        mounts=(Mount(host_path=str(tmp_path / "device"), container_path="/etc/gpu"),),
        hooks=(
            Hook(hook_name="createContainer", args=("hook", "before"), **hook),  # type: ignore[arg-type]
            Hook(hook_name="poststop", args=("hook", "after"), **hook),  # type: ignore[arg-type]
        ),
    )
    builder = DriverBuilder(DRIVER)
    builder.devices(lambda: [make_device("gpu-0")])
    builder.prepare(lambda claim, devices, config: dict.fromkeys(devices, edits))
    async with running_node("process") as node, node.driver(builder.build()):
        pod = await node.add_pod("pod", command='echo "$GPU: $(cat $DRAY_ROOT/etc/gpu)"; exit 3')
        done = await node.wait_phase("Failed")
        assert node.log(pod) == "gpu-0: I am gpu-0\n"
        assert (ended(done)["exitCode"], ended(done)["reason"]) == (3, "Error")
        assert '"status": "creating"' in (tmp_path / "before").read_text()
        assert '"status": "stopped"' in (tmp_path / "after").read_text()


async def test_a_hook_that_fails_keeps_the_container_from_starting() -> None:
    edits = ContainerEdits(hooks=(Hook(hook_name="createRuntime", path="/bin/false"),))
    builder = DriverBuilder(DRIVER)
    builder.devices(lambda: [make_device("gpu-0")])
    builder.prepare(lambda claim, devices, config: dict.fromkeys(devices, edits))
    async with running_node("process") as node, node.driver(builder.build()):
        await node.add_pod("pod", command="echo never")
        done = await node.wait_phase("Failed")
        assert (ended(done)["exitCode"], ended(done)["reason"]) == (128, "StartError")
        assert "hook createRuntime /bin/false ended with 1" in ended(done)["message"]


@pytest.mark.parametrize(
    ("uses", "expected"),
    [
        ([{"name": "c0"}], ["GPU_ONE_0=gpu-0", "GPU_TWO_1=gpu-1"]),
        ([{"name": "c0", "request": "two"}], ["GPU_TWO_1=gpu-1"]),
    ],
)
async def test_a_container_gets_the_devices_of_the_requests_that_it_names(
    uses: list[Json], expected: list[str]
) -> None:
    async with running_node("process") as node, node.driver(Gpus()):
        devices = {"one": [(NODE, "gpu-0")], "two": [(NODE, "gpu-1")]}
        claim = await add_allocated_claim(node.client, DRIVER, devices)
        pod = await node.add_pod("pod", claim, uses=uses, command="env | grep GPU_ | sort")
        await node.wait_phase("Succeeded")
        assert node.log(pod).split() == expected


async def test_variables_refer_to_others_and_to_the_pod() -> None:
    async with running_node("process") as node:
        env: list[Json] = [
            {"name": "A", "value": "one"},
            {"name": "B", "value": "$(A) and $$(A)"},
            {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        ]
        container: Json = {
            "name": "main",
            "image": "none",
            "env": env,
            "command": ["echo", "$(B)", "$(POD)", "$(NODE)"],
        }
        pod = await node.add_pod("pod", allocate=False, containers=[container])
        await node.wait_phase("Succeeded")
        assert node.log(pod) == "one and $(A) pod node-1\n"


async def test_a_command_that_does_not_exist_is_a_start_error() -> None:
    async with running_node("process") as node:
        container: Json = {"name": "main", "image": "none", "command": ["/no/such/program"]}
        await node.add_pod("pod", allocate=False, containers=[container])
        done = await node.wait_phase("Failed")
        assert ended(done)["reason"] == "StartError"
        assert "/no/such/program: No such file or directory" in ended(done)["message"]


async def test_an_image_without_a_command_waits_and_says_what_is_missing() -> None:
    async with running_node("process") as node:
        await node.add_pod("pod", allocate=False)

        async def reason() -> Any:
            pod = await node.pod()
            statuses = (pod or {}).get("status", {}).get("containerStatuses") or [{}]
            return statuses[0].get("state", {}).get("waiting", {}).get("reason") == "CreateContainerError"

        await eventually(reason, "the container says that it can't be created")
        assert any("needs a command" in text for text in await node.events("Failed"))


# Restarts


async def test_a_container_that_fails_is_restarted_and_its_logs_are_kept_apart(tmp_path: Path) -> None:
    command = f"echo x >> {tmp_path}/runs; n=$(wc -l < {tmp_path}/runs); echo attempt $n; [ $n = 3 ]"
    async with running_node("process") as node:
        pod = await node.add_pod("pod", allocate=False, command=command, restartPolicy="OnFailure")
        done = await node.wait_phase("Succeeded")
        status = done["status"]["containerStatuses"][0]
        assert status["restartCount"] == 2
        assert status["lastState"]["terminated"]["exitCode"] == 1
        directory = node.root / "pods" / pod["metadata"]["uid"] / "main"
        assert await _read(directory, LogQuery()) == "attempt 3\n"
        assert await _read(directory, LogQuery(previous=True)) == "attempt 2\n"
        assert not (directory / "0.log").exists()


async def _read(directory: Path, query: LogQuery) -> str:
    return b"".join([piece async for piece in read_log(directory, query)]).decode()


async def test_init_containers_run_one_after_the_other_and_sidecars_beside_the_rest() -> None:
    def shell(name: str, command: str, **more: str) -> Json:
        return {"name": name, "image": "none", "command": ["sh", "-c", command], **more}

    async with running_node("process") as node:
        directory = node.root
        init = [
            shell("first", f"echo first >> {directory}/order"),
            shell("beside", f"echo beside >> {directory}/order; exec sleep 100", restartPolicy="Always"),
            shell(
                "second",
                f"until grep -q beside {directory}/order; do sleep 0.02; done; echo second >> {directory}/order",
            ),
        ]
        main = shell("main", f"echo main >> {directory}/order")
        await node.add_pod("pod", allocate=False, initContainers=init, containers=[main])
        done = await node.wait_phase("Succeeded")
        assert (directory / "order").read_text().split() == ["first", "beside", "second", "main"]
        sidecar = next(item for item in done["status"]["initContainerStatuses"] if item["name"] == "beside")
        assert sidecar["state"]["terminated"]["exitCode"] == 143


async def test_an_init_container_that_fails_for_good_fails_the_pod() -> None:
    async with running_node("process") as node:
        init = [{"name": "init", "image": "none", "command": ["false"]}]
        await node.add_pod("pod", allocate=False, initContainers=init, command="echo never")
        done = await node.wait_phase("Failed")
        assert done["status"]["containerStatuses"][0]["state"]["waiting"]


async def test_a_container_that_ignores_the_request_to_end_is_killed(tmp_path: Path) -> None:
    command = f"trap '' TERM; echo {PID} > {tmp_path}/pid; while :; do sleep 0.1; done"
    async with running_node("process") as node:
        await node.add_pod("pod", allocate=False, command=command, terminationGracePeriodSeconds=1)
        pid = await read_pid(tmp_path / "pid")
        await node.delete_pod()
        await node.wait_gone()
        assert not is_alive(pid)


async def test_a_container_whose_start_was_given_up_is_on_record_by_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spawn, spawning = shims._spawn, asyncio.Event()
    loop = asyncio.get_running_loop()

    def tell_and_spawn(*arguments: Any) -> None:
        loop.call_soon_threadsafe(spawning.set)
        spawn(*arguments)

    monkeypatch.setattr(shims, "_spawn", tell_and_spawn)
    start = asyncio.create_task(
        launch(
            tmp_path,
            container_id="id",
            attempt=0,
            command=("sleep", "1000"),
            env=dict(os.environ),
            log=tmp_path / "0.log",
            working_directory=str(tmp_path),
        )
    )
    await spawning.wait()
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    launched = recover_last(tmp_path)
    assert launched is not None
    assert launched.exit_code is None
    await end_containers(tmp_path.parent)
    assert has_ended(tmp_path, 0)


async def test_nothing_of_a_pod_is_left_when_it_is_gone() -> None:
    async with running_node("process") as node, node.driver(Gpus()):
        pod = await node.add_pod("pod", command="exec sleep 100")
        await node.wait_phase("Running")
        assert list(node.options.cdi.glob("*.json"))
        await node.delete_pod()
        await node.wait_gone()
        await eventually(lambda: not (node.root / "pods" / pod["metadata"]["uid"]).exists(), "its directory is removed")
        assert not list(node.options.cdi.glob("*.json"))
        assert not list((node.root / "claims").glob("*.json"))
        assert not list((node.root / "plugins" / DRIVER / "claims").iterdir())


# A new agent


async def restart_agent(node: NodeUnderTest) -> None:
    await node.stop()
    await node.start()


async def test_a_running_container_is_adopted_by_the_next_agent(tmp_path: Path) -> None:
    driver = Gpus()
    command = f"echo {PID} >> {tmp_path}/pid; until [ -e {tmp_path}/go ]; do sleep 0.02; done; exit 7"
    async with running_node("process") as node, node.driver(driver):
        await node.add_pod("pod", command=command)
        before = await node.wait_phase("Running")
        pid = await read_pid(tmp_path / "pid")
        await restart_agent(node)
        await asyncio.sleep(0.3)  # a second run would show itself by now
        assert is_alive(pid)
        (tmp_path / "go").touch()
        done = await node.wait_phase("Failed")
        assert ended(done)["exitCode"] == 7
        assert ended(done)["startedAt"] == before["status"]["containerStatuses"][0]["state"]["running"]["startedAt"]
        assert len((tmp_path / "pid").read_text().split()) == 1
        assert [what for what, _ in driver.calls] == ["prepare", "unprepare"]


async def test_a_container_that_ended_while_no_agent_was_there_is_not_run_again(tmp_path: Path) -> None:
    async with running_node("process") as node:
        await node.add_pod("pod", allocate=False, command=f"echo {PID} >> {tmp_path}/pid; sleep 0.3; exit 5")
        await node.wait_phase("Running")
        pid = await read_pid(tmp_path / "pid")
        await node.stop()
        await eventually(lambda: not is_alive(pid), "the process has ended")
        await node.start()
        done = await node.wait_phase("Failed")
        assert ended(done)["exitCode"] == 5
        assert len((tmp_path / "pid").read_text().split()) == 1


async def test_a_container_whose_keeper_was_killed_is_ended_before_it_is_run_again(tmp_path: Path) -> None:
    async with running_node("process") as node:
        command = f"echo {PID} >> {tmp_path}/pid; exec sleep 100"
        await node.add_pod("pod", allocate=False, command=command, restartPolicy="Always")
        await node.wait_phase("Running")
        pid = await read_pid(tmp_path / "pid")
        await node.stop()
        keeper = int(stat_of(pid)[1])
        os.kill(keeper, signal.SIGKILL)
        await eventually(lambda: not is_alive(keeper), "the keeper is dead")
        await node.start()
        await eventually(lambda: len((tmp_path / "pid").read_text().split()) == 2, "it runs again")
        assert not is_alive(pid)


@pytest.mark.parametrize("is_forced", [False, True])
async def test_a_pod_that_was_deleted_while_no_agent_was_there_is_ended_and_its_claim_given_back(
    tmp_path: Path, is_forced: bool
) -> None:
    driver = Gpus()
    async with running_node("process") as node, node.driver(driver):
        await node.add_pod("pod", command=f"echo {PID} > {tmp_path}/pid; exec sleep 100")
        await node.wait_phase("Running")
        pid = await read_pid(tmp_path / "pid")
        await node.stop()
        await node.client.delete(PODS, "pod", "default", grace_period_seconds=0 if is_forced else None)
        await node.start()
        await node.wait_gone()
        await eventually(lambda: driver.calls[-1] == ("unprepare", "pod-claim"), "the claim is given back")
        assert not is_alive(pid)


# Logs


async def test_logs_can_be_followed_until_the_container_ends() -> None:
    async with running_node("process") as node:
        command = "for n in 1 2 3; do echo line $n; sleep 0.1; done"
        pod = await node.add_pod("pod", allocate=False, command=command)
        await node.wait_phase("Running")
        directory = node.root / "pods" / pod["metadata"]["uid"] / "main"
        assert await _read(directory, LogQuery(follow=True)) == "line 1\nline 2\nline 3\n"
        assert await _read(directory, LogQuery(tail_lines=2)) == "line 2\nline 3\n"
        assert await _read(directory, LogQuery(tail_lines=9)) == "line 1\nline 2\nline 3\n"
        assert await _read(directory, LogQuery(tail_lines=0)) == ""
        assert await _read(directory, LogQuery(limit_bytes=4)) == "line"
        with pytest.raises(LogMissing, match="no previous log of container main"):
            await _read(directory, LogQuery(previous=True))
