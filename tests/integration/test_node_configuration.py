"""What containers are configured with, and how the agent asks them how they are: variables, volumes, probes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dray.api.meta import Json
from dray.api.resources import CONFIG_MAPS, SECRETS
from dray.node import containers, podworker
from dray.testing.waiting import eventually
from tests.integration.nodes import NodeUnderTest, running_node

SETTINGS = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"MODE": "fast"}}
LOGIN = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "stringData": {"TOKEN": "hidden"}}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(podworker, "FIRST_RETRY", 0.02)
    monkeypatch.setattr(containers, "FIRST_RESTART", 0.02)


def shell(command: str, name: str = "main", **more: Any) -> Json:
    return {"name": name, "image": "none", "command": ["sh", "-c", command], **more}


async def status_of(node: NodeUnderTest, container: str = "main") -> Json:
    status = ((await node.pod()) or {}).get("status") or {}
    found = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    return next((item for item in found if item["name"] == container), {})


async def is_ready(node: NodeUnderTest) -> bool:
    conditions = ((await node.pod()) or {}).get("status", {}).get("conditions") or ()
    return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)


# Variables and volumes


async def test_variables_and_files_come_from_config_maps_and_secrets() -> None:
    container = shell(
        'echo "$MODE $LOGIN"; cd $DRAY_ROOT; cat etc/settings/MODE etc/login/token; echo; cat tmp/note',
        envFrom=[{"configMapRef": {"name": "settings"}}],
        env=[{"name": "LOGIN", "valueFrom": {"secretKeyRef": {"name": "login", "key": "TOKEN"}}}],
        volumeMounts=[
            {"name": "settings", "mountPath": "/etc/settings"},
            {"name": "login", "mountPath": "/etc/login"},
            {"name": "scratch", "mountPath": "/tmp"},
        ],
    )
    mounts = [{"name": "scratch", "mountPath": "/notes"}]
    first = shell("echo noted > $DRAY_ROOT/notes/note", "first", volumeMounts=mounts)
    volumes = [
        {"name": "settings", "configMap": {"name": "settings"}},
        {"name": "login", "secret": {"secretName": "login", "items": [{"key": "TOKEN", "path": "token"}]}},
        {"name": "scratch", "emptyDir": {}},
    ]
    async with running_node("process") as node:
        await node.client.create(CONFIG_MAPS, SETTINGS, "default")
        await node.client.create(SECRETS, LOGIN, "default")
        spec = {"volumes": volumes, "initContainers": [first], "containers": [container]}
        pod = await node.add_pod(allocate=False, **spec)
        await node.wait_phase("Succeeded")
        assert node.log(pod).splitlines() == ["fast hidden", "fasthidden", "noted"]


async def test_a_container_waits_for_its_config_map_and_says_so() -> None:
    container = shell('echo "$MODE"', envFrom=[{"configMapRef": {"name": "settings"}}])
    async with running_node("process") as node:
        pod = await node.add_pod(allocate=False, containers=[container])

        async def says_so() -> bool:
            waiting = (await status_of(node)).get("state", {}).get("waiting") or {}
            reason, message = "CreateContainerConfigError", 'configmap "settings" not found'
            return (waiting.get("reason"), waiting.get("message")) == (reason, message)

        await eventually(says_so, "the container says what is missing")
        assert ((await node.pod()) or {})["status"]["phase"] == "Pending"
        await node.client.create(CONFIG_MAPS, SETTINGS, "default")
        await node.wait_phase("Succeeded")
        assert node.log(pod) == "fast\n"


async def test_a_pod_waits_for_its_volumes_and_says_so() -> None:
    container = shell("cat $DRAY_ROOT/etc/MODE", volumeMounts=[{"name": "config", "mountPath": "/etc"}])
    volumes = [{"name": "config", "configMap": {"name": "settings"}}]
    async with running_node("process") as node:
        pod = await node.add_pod(allocate=False, containers=[container], volumes=volumes)
        missing = 'MountVolume.SetUp failed for volume "config" : configmap "settings" not found'

        async def says_so() -> bool:
            return missing in await node.events("FailedMount")

        await eventually(says_so, "an event says what is missing")
        await node.client.create(CONFIG_MAPS, SETTINGS, "default")
        await node.wait_phase("Succeeded")
        assert node.log(pod) == "fast"


async def test_what_the_agent_leaves_out_is_told_in_events() -> None:
    container = shell(
        "exec sleep 100",
        livenessProbe={"grpc": {"port": 1}},
        lifecycle={"preStop": {"exec": {"command": ["true"]}}},
    )
    async with running_node("process") as node:
        await node.add_pod(allocate=False, containers=[container])
        await node.wait_phase("Running")

        async def told() -> list[str]:
            return await node.events("Unsupported")

        text = "Container main: this node agent leaves out: liveness probe (grpc), lifecycle hook preStop"
        assert await eventually(told, "an event names what is left out") == [text]


# Probes


async def test_a_pod_is_ready_while_its_readiness_probe_passes(tmp_path: Path) -> None:
    probe = {"exec": {"command": ["test", "-e", str(tmp_path / "open")]}, "periodSeconds": 1, "failureThreshold": 1}
    async with running_node("process") as node:
        await node.add_pod(allocate=False, containers=[shell("exec sleep 100", readinessProbe=probe)])
        await node.wait_phase("Running")
        assert not await is_ready(node)
        (tmp_path / "open").touch()
        await eventually(lambda: is_ready(node), "the pod is ready")
        (tmp_path / "open").unlink()

        async def is_closed() -> bool:
            return not await is_ready(node)

        await eventually(is_closed, "the pod is ready no more")
        assert (await status_of(node))["restartCount"] == 0


async def test_a_container_whose_liveness_probe_fails_is_restarted(tmp_path: Path) -> None:
    file = tmp_path / "alive"
    probe = {"exec": {"command": ["sh", "-c", f"cat {file}"]}, "periodSeconds": 1, "failureThreshold": 1}
    container = shell(f"touch {file}; exec sleep 100", livenessProbe=probe)
    async with running_node("process") as node:
        await node.add_pod(allocate=False, containers=[container], restartPolicy="Always")
        await node.wait_phase("Running")
        await eventually(file.exists, "the container runs")
        file.unlink()

        async def is_restarted() -> bool:
            status = await status_of(node)
            return bool(status.get("restartCount")) and bool(status["state"].get("running"))

        await eventually(is_restarted, "the container is restarted")
        assert (await status_of(node))["lastState"]["terminated"]["exitCode"] == 143
        assert "Container main failed liveness probe, will be restarted" in await node.events("Killing")
        assert any(text.startswith("Liveness probe failed: cat:") for text in await node.events("Unhealthy"))


async def test_a_pod_that_must_not_restart_fails_with_its_liveness_probe() -> None:
    probe = {"tcpSocket": {"port": 1}, "periodSeconds": 1, "failureThreshold": 1}
    async with running_node("process") as node:
        await node.add_pod(allocate=False, containers=[shell("exec sleep 100", livenessProbe=probe)])
        await node.wait_phase("Failed")
        assert await node.events("Killing") == ["Container main failed liveness probe"]


async def test_what_comes_after_a_sidecar_waits_until_the_sidecar_has_started(tmp_path: Path) -> None:
    probe = {"exec": {"command": ["test", "-e", str(tmp_path / "up")]}, "periodSeconds": 1, "failureThreshold": 60}
    sidecar = shell("exec sleep 100", "beside", restartPolicy="Always", startupProbe=probe)
    async with running_node("process") as node:
        await node.add_pod(allocate=False, initContainers=[sidecar], containers=[shell("echo main")])

        async def is_running() -> bool:
            return bool((await status_of(node, "beside")).get("state", {}).get("running"))

        await eventually(is_running, "the sidecar runs")
        assert not (await status_of(node, "beside"))["started"]
        assert (await status_of(node))["state"]["waiting"]
        (tmp_path / "up").touch()
        await node.wait_phase("Succeeded")


async def test_an_adopted_container_stays_ready_and_is_asked_again(tmp_path: Path) -> None:
    (tmp_path / "open").touch()
    command = ["sh", "-c", f'[ "$WORD" = magic ] && test -e {tmp_path}/open']
    probe = {"exec": {"command": command}, "periodSeconds": 1, "failureThreshold": 1}
    container = shell("exec sleep 100", readinessProbe=probe, env=[{"name": "WORD", "value": "magic"}])
    async with running_node("process") as node:
        await node.add_pod(allocate=False, containers=[container])
        await eventually(lambda: is_ready(node), "the pod is ready")
        await node.stop()
        await node.start()
        assert await is_ready(node)
        (tmp_path / "open").unlink()

        async def is_closed() -> bool:
            return not await is_ready(node)

        await eventually(is_closed, "the new agent asks, too")
