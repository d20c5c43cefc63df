from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from dray.api.meta import Json
from dray.api.printing import cells_of, columns_of, print_table

NOW = datetime(2026, 8, 1, 12, tzinfo=UTC)
CREATED = "2026-08-01T11:59:30Z"


def shown(api_version: str, kind: str, obj: Json) -> dict[str, Any]:
    obj = {**obj, "metadata": {"name": "x", "creationTimestamp": CREATED, **obj.get("metadata", {})}}
    names = [column.name for column in columns_of(api_version, kind)]
    return dict(zip(names, cells_of(api_version, kind, obj, NOW), strict=True))


def pod_row(**status: Any) -> dict[str, Any]:
    metadata = status.pop("metadata", {})
    spec = {"containers": [{"name": "a"}, {"name": "b"}], **status.pop("spec", {})}
    return shown("v1", "Pod", {"metadata": metadata, "spec": spec, "status": status})


RUNNING = {"ready": True, "state": {"running": {}}, "restartCount": 0}
DONE = {"state": {"terminated": {"reason": "Completed", "exitCode": 0}}}


def test_a_claims_state_is_told_in_words() -> None:
    status = {"allocation": {"devices": {}}, "reservedFor": [{"name": "p"}]}
    assert shown("resource.k8s.io/v1", "ResourceClaim", {"status": status})["State"] == "allocated,reserved"


def test_rows_carry_metadata_and_columns_their_definition() -> None:
    claim = {"metadata": {"name": "c", "creationTimestamp": CREATED}}
    table = print_table("resource.k8s.io/v1", "ResourceClaim", [claim], NOW)
    assert table["rows"] == [
        {
            "cells": ["c", "pending", "30s"],
            "object": {
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": claim["metadata"],
            },
        }
    ]
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "State", "Age"]


def test_kinds_without_columns_of_their_own_show_when_they_were_created() -> None:
    row = shown("rbac.authorization.k8s.io/v1", "Role", {})
    assert row == {"Name": "x", "Created At": CREATED}


def test_a_running_pod_counts_its_ready_containers() -> None:
    row = pod_row(phase="Running", containerStatuses=[RUNNING, RUNNING])
    assert (row["Ready"], row["Status"], row["Restarts"], row["Age"]) == ("2/2", "Running", "0", "30s")


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"phase": "Pending"}, "Pending"),
        (
            {"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]},
            "SchedulingGated",
        ),
        ({"phase": "Failed", "reason": "Evicted"}, "Evicted"),
        ({"phase": "Running", "metadata": {"deletionTimestamp": CREATED}}, "Terminating"),
        ({"phase": "Failed", "metadata": {"deletionTimestamp": CREATED}}, "Failed"),
        (
            {"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]},
            "ImagePullBackOff",
        ),
        ({"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 3}}}]}, "ExitCode:3"),
        ({"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"signal": 9}}}]}, "Signal:9"),
        ({"phase": "Running", "containerStatuses": [DONE, RUNNING]}, "NotReady"),
        (
            {
                "phase": "Running",
                "containerStatuses": [DONE, RUNNING],
                "conditions": [{"type": "Ready", "status": "True"}],
            },
            "Running",
        ),
    ],
)
def test_a_pods_status_is_the_word_that_says_most(status: Json, expected: str) -> None:
    assert pod_row(**status)["Status"] == expected


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({"running": {}}, "Init:0/1"),
        ({"waiting": {"reason": "CrashLoopBackOff"}}, "Init:CrashLoopBackOff"),
        ({"terminated": {"exitCode": 1}}, "Init:ExitCode:1"),
        ({"terminated": {"exitCode": 0}}, "Pending"),
    ],
)
def test_a_pod_that_is_starting_shows_its_init_container(state: Json, expected: str) -> None:
    row = pod_row(
        phase="Pending",
        spec={"initContainers": [{"name": "i"}]},
        initContainerStatuses=[{"name": "i", "state": state}],
    )
    assert row["Status"] == expected


def test_a_sidecar_counts_as_a_container() -> None:
    row = pod_row(
        phase="Running",
        spec={"initContainers": [{"name": "s", "restartPolicy": "Always"}]},
        initContainerStatuses=[{"name": "s", "started": True, "ready": True, "state": {"running": {}}}],
        containerStatuses=[RUNNING, RUNNING],
    )
    assert row["Ready"] == "3/3"


def test_restarts_tell_when_the_last_one_was() -> None:
    restarted = {**RUNNING, "restartCount": 2, "lastState": {"terminated": {"finishedAt": "2026-08-01T11:55:00Z"}}}
    assert pod_row(phase="Running", containerStatuses=[restarted])["Restarts"] == "2 (5m ago)"


def test_wide_columns_of_a_pod_are_filled() -> None:
    row = pod_row(
        podIPs=[{"ip": "10.0.0.1"}],
        spec={"nodeName": "n", "readinessGates": [{"conditionType": "a"}, {"conditionType": "b"}]},
        conditions=[{"type": "a", "status": "True"}],
    )
    assert (row["IP"], row["Node"], row["Nominated Node"], row["Readiness Gates"]) == ("10.0.0.1", "n", "<none>", "1/2")


def test_a_cordoned_node_says_so() -> None:
    row = shown(
        "v1",
        "Node",
        {
            "metadata": {"labels": {"node-role.kubernetes.io/control-plane": "", "kubernetes.io/role": "etcd"}},
            "spec": {"unschedulable": True},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            },
        },
    )
    assert row["Status"] == "Ready,SchedulingDisabled"
    assert row["Roles"] == "control-plane,etcd"
    assert (row["Internal-IP"], row["External-IP"]) == ("10.0.0.1", "<none>")


def test_a_node_that_never_reported_is_unknown() -> None:
    assert shown("v1", "Node", {})["Status"] == "Unknown"


@pytest.mark.parametrize(
    "event",
    [
        {"involvedObject": {"kind": "Pod", "name": "p"}, "message": " hi ", "firstTimestamp": CREATED, "count": 3},
        {"regarding": {"kind": "Pod", "name": "p"}, "note": "hi", "eventTime": CREATED, "deprecatedCount": 3},
        {
            "involvedObject": {"kind": "Pod", "name": "p"},
            "message": "hi",
            "series": {"count": 3, "lastObservedTime": CREATED},
        },
    ],
)
def test_events_of_both_groups_read_the_same(event: Json) -> None:
    row = shown("v1", "Event", event)
    assert (row["Last Seen"], row["Object"], row["Message"], row["Count"]) == ("30s", "pod/p", "hi", 3)


@pytest.mark.parametrize(
    ("job", "status", "completions", "duration"),
    [
        ({"spec": {"completions": 4}, "status": {"succeeded": 1, "startTime": CREATED}}, "Running", "1/4", "30s"),
        ({"spec": {"parallelism": 3}}, "Running", "0/1 of 3", ""),
        (
            {
                "status": {
                    "succeeded": 1,
                    "startTime": "2026-08-01T11:00:00Z",
                    "completionTime": "2026-08-01T11:00:10Z",
                    "conditions": [{"type": "Complete", "status": "True"}],
                }
            },
            "Complete",
            "1/1",
            "10s",
        ),
        ({"metadata": {"deletionTimestamp": CREATED}}, "Terminating", "0/1", ""),
    ],
)
def test_a_jobs_progress_is_shown(job: Json, status: str, completions: str, duration: str) -> None:
    row = shown("batch/v1", "Job", job)
    assert (row["Status"], row["Completions"], row["Duration"]) == (status, completions, duration)


def test_a_quota_shows_used_and_hard() -> None:
    status = {"hard": {"requests.cpu": "4", "limits.cpu": "8"}, "used": {"requests.cpu": "1"}}
    row = shown("v1", "ResourceQuota", {"status": status})
    assert (row["Request"], row["Limit"]) == ("requests.cpu: 1/4", "limits.cpu: 0/8")


@pytest.mark.parametrize(
    ("api_version", "kind", "obj", "column", "cell"),
    [
        ("v1", "Namespace", {"status": {"phase": "Active"}}, "Status", "Active"),
        ("v1", "ConfigMap", {"data": {"a": "b"}, "binaryData": {"c": ""}}, "Data", 2),
        ("v1", "ServiceAccount", {"secrets": [{"name": "s"}]}, "Secrets", 1),
        ("coordination.k8s.io/v1", "Lease", {"spec": {"holderIdentity": "me"}}, "Holder", "me"),
    ],
)
def test_small_kinds_show_what_matters(api_version: str, kind: str, obj: Json, column: str, cell: object) -> None:
    assert shown(api_version, kind, obj)[column] == cell
