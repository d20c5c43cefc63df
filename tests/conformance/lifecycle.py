"""Situations played on a whole control plane: the same pods, claims and events as on a real one.

`DRAY_LIFECYCLE=processes` plays them over HTTPS with API server, controllers and scheduler as separate processes;
the default is one process without HTTP between the components.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Coroutine, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tests.conformance.control_planes import ControlPlane, InProcess, SeparateProcesses
from tests.conformance.runner import Case, has_keys, iter_data

SETTLE_SECONDS = 30.0

Json = dict[str, Any]


is_mine = has_keys("steps title")


def iter_cases(paths: list[Path]) -> Iterator[Case]:
    for _, situations in iter_data(paths, is_mine):
        plane = SeparateProcesses() if os.environ.get("DRAY_LIFECYCLE") == "processes" else InProcess()
        with asyncio.Runner() as runner:
            try:
                runner.run(plane.start())
                for situation in situations:
                    yield Case(situation["title"], partial(_run, runner, plane, situation))
            finally:
                runner.run(plane.stop())


def _run(runner: asyncio.Runner, plane: ControlPlane, situation: Json) -> str | None:
    return runner.run(_play(plane, situation))


async def _play(plane: ControlPlane, situation: Json) -> str | None:
    for step in situation["steps"]:
        await plane.request(step["method"], step["path"], step.get("body"), step.get("contentType", ""))
    namespace = _namespace(situation)
    wanted = _expected(situation)
    difference: str | None = "nothing was compared"
    deadline = asyncio.get_running_loop().time() + SETTLE_SECONDS
    while asyncio.get_running_loop().time() < deadline:
        await plane.wait_settled()
        difference = _compare(wanted, await _observe(plane, namespace))
        if difference is None:
            return None
        if plane.is_really_settled:
            break
        await asyncio.sleep(0.1)
    return difference


def _namespace(situation: Json) -> str:
    """Of the claims that are expected; without any, of the last step."""
    for claim in situation["claims"]:
        return str(claim["metadata"]["namespace"])
    found = re.search(r"/namespaces/([^/?]+)", situation["steps"][-1]["path"])
    assert found is not None, situation["title"]
    return found[1]


async def _observe(plane: ControlPlane, namespace: str) -> Json:
    pods, claims, events = await asyncio.gather(
        _list(plane, f"/api/v1/namespaces/{namespace}/pods"),
        _list(plane, f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims"),
        _list(plane, f"/api/v1/namespaces/{namespace}/events"),
    )
    uids = {obj["metadata"]["uid"]: f"<uid of Pod {obj['metadata']['name']}>" for obj in pods}
    return {
        "pods": sorted((_pod(pod) for pod in pods), key=str),
        "claims": sorted((_claim(claim, uids) for claim in claims), key=str),
        "events": sorted({_event(event["type"], event["reason"], event["involvedObject"]) for event in events}),
    }


def _list(plane: ControlPlane, path: str) -> Coroutine[Any, Any, list[Json]]:
    async def items() -> list[Json]:
        return (await plane.request("GET", path, None, ""))["items"] or []

    return items()


def _expected(situation: Json) -> Json:
    events = (e for e in situation["events"])
    return {
        "pods": sorted((_pod(pod) for pod in situation["pods"]), key=str),
        "claims": sorted((_claim(claim, {}) for claim in situation["claims"]), key=str),
        "events": sorted(
            {
                _event(e["type"], e["reason"], dict(zip(("kind", "name"), e["object"].split(), strict=True)))
                for e in events
            }
        ),
    }


def _event(kind: str, reason: str, about: Json) -> str:
    return f"{kind} {reason} {about['kind']} {about['name']}"


def _pod(pod: Json) -> Json:
    status = pod["status"]
    scheduled = next((c for c in status.get("conditions") or () if c["type"] == "PodScheduled"), None)
    names = [_without_suffix(s.get("resourceClaimName", "")) for s in status.get("resourceClaimStatuses") or ()]
    return {
        "name": pod["metadata"]["name"],
        "node": pod["spec"].get("nodeName"),
        "phase": status["phase"],
        "scheduled": scheduled and (scheduled["status"], scheduled.get("reason", "")),
        "claims": names,
    }


def _claim(claim: Json, uids: dict[str, str]) -> Json:
    metadata = claim["metadata"]
    owners = [
        {key: owner.get(key) for key in ("apiVersion", "kind", "name", "controller", "blockOwnerDeletion")}
        for owner in metadata.get("ownerReferences") or ()
    ]
    status = claim.get("status") or {}
    users = [user | {"uid": uids.get(user["uid"], user["uid"])} for user in status.get("reservedFor") or ()]
    allocation = status.get("allocation")
    return {
        "name": _without_suffix(metadata["name"]) if "generateName" in metadata else metadata["name"],
        "labels": metadata.get("labels"),
        "annotations": metadata.get("annotations"),
        "finalizers": metadata.get("finalizers"),
        "owners": owners,
        "deleted": "deletionTimestamp" in metadata,
        "spec": claim["spec"],
        "allocation": allocation and {k: v for k, v in allocation.items() if k != "allocationTimestamp"},
        "reservedFor": users,
    }


def _without_suffix(name: str) -> str:
    return name.rsplit("-", 1)[0]


def _compare(wanted: Json, got: Json) -> str | None:
    problems = [
        f"{part}: expected {wanted[part]}\n     {' ' * len(part)}  got      {got[part]}"
        for part in wanted
        if wanted[part] != got[part]
    ]
    return "\n     ".join(problems) or None
