"""What a pod's status says about its containers."""

from __future__ import annotations

from dray.node.statuses import ContainerRecord, merge_conditions, pod_status

NOW = "2026-01-01T00:00:00Z"


def conditions(records: list[ContainerRecord], phase: str) -> dict[str, tuple[str, str]]:
    status = pod_status(records, phase=phase, started_at=NOW, now=NOW)
    return {item["type"]: (item["status"], item.get("reason", "")) for item in status["conditions"]}


def test_a_pod_is_ready_when_all_its_containers_run() -> None:
    one, two = ContainerRecord("one", "image"), ContainerRecord("two", "image")
    one.run("id-1", NOW)
    assert conditions([one, two], "Running")["Ready"] == ("False", "ContainersNotReady")
    two.run("id-2", NOW)
    assert conditions([one, two], "Running")["Ready"] == ("True", "")


def test_a_container_that_is_not_ready_by_its_probe_keeps_the_pod_from_it() -> None:
    record = ContainerRecord("one", "image", is_ready=False)
    record.run("id", NOW)
    assert conditions([record], "Running")["Ready"] == ("False", "ContainersNotReady")
    assert (record.status()["started"], record.status()["ready"]) == (True, False)


def test_a_pod_is_pending_until_each_of_its_containers_ran_once() -> None:
    one, two = ContainerRecord("one", "image"), ContainerRecord("two", "image")
    one.run("id-1", NOW)
    two.wait_for("CreateContainerError")
    assert pod_status([one, two], phase="Running", started_at=NOW, now=NOW)["phase"] == "Pending"
    two.run("id-2", NOW)
    two.end(1, NOW)
    two.wait_for("CrashLoopBackOff")
    assert pod_status([one, two], phase="Running", started_at=NOW, now=NOW)["phase"] == "Running"


def test_a_pod_that_is_done_says_so() -> None:
    record = ContainerRecord("one", "image")
    record.run("id", NOW)
    record.end(0, NOW)
    assert conditions([record], "Succeeded")["Ready"] == ("False", "PodCompleted")
    assert record.status()["state"]["terminated"]["reason"] == "Completed"


def test_a_pod_is_initialized_once_its_init_containers_are_through() -> None:
    init, main = ContainerRecord("init", "image", "init"), ContainerRecord("main", "image")
    assert conditions([init, main], "Pending")["Initialized"] == ("False", "ContainersNotReady")
    init.end(0, NOW)
    assert conditions([init, main], "Running")["Initialized"] == ("True", "")


def test_the_end_before_a_restart_is_remembered() -> None:
    record = ContainerRecord("one", "image")
    record.run("id", NOW)
    record.end(3, NOW)
    record.wait_for("CrashLoopBackOff")
    status = record.status()
    assert status["state"] == {"waiting": {"reason": "CrashLoopBackOff"}}
    assert status["lastState"]["terminated"]["exitCode"] == 3


def test_a_record_is_restored_from_a_status() -> None:
    record = ContainerRecord("one", "image")
    record.restarts = 2
    record.run("id", NOW)
    record.end(3, NOW, "Error", "boom")
    restored = ContainerRecord.known({"name": "one", "image": "image"}, "main", record.status())
    assert restored.status() == record.status()
    running = ContainerRecord("one", "image")
    running.run("id", NOW)
    assert (
        ContainerRecord.known({"name": "one", "image": "image"}, "main", running.status()).status() == running.status()
    )


def test_conditions_keep_the_time_of_their_last_change_and_those_of_others_stay() -> None:
    old = [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": "long ago"},
        {"type": "Ready", "status": "False", "lastTransitionTime": "long ago"},
        {"type": "Initialized", "status": "False", "lastTransitionTime": "long ago"},
    ]
    new = [
        {"type": "Ready", "status": "False", "lastTransitionTime": "now"},
        {"type": "Initialized", "status": "True", "lastTransitionTime": "now"},
    ]
    assert {item["type"]: item["lastTransitionTime"] for item in merge_conditions(old, new)} == {
        "PodScheduled": "long ago",
        "Ready": "long ago",
        "Initialized": "now",
    }
