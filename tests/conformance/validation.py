"""Compares validation with recorded answers (validation/<kind>.json).

A vector is run once with the gates of each profile that it names. It passes if the errors are the same as a multiset of
type and field, and the stored object, the warnings and the questions to the authorizer are the same. The wording of
errors is compared separately, by `find_wording_differences`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from dray.api.codec import decode_object, encode_as, read_object
from dray.api.errors import BadRequest
from dray.api.features import FeatureGates
from dray.validation.outcome import Outcome, RequestContext
from dray.validation.statusauthz import Access, Decision, Requester
from dray.validation.strategy import create, update, update_status
from tests.conformance.differences import describe
from tests.conformance.runner import Case, has_keys, iter_data

NOW = "2026-08-01T00:00:00Z"

DEFAULT_GATES = {
    "DRAAdminAccess",
    "DRAConsumableCapacity",
    "DRADeviceBindingConditions",
    "DRADeviceTaintRules",
    "DRADeviceTaints",
    "DRAExtendedResource",
    "DRAPartitionableDevices",
    "DRAPrioritizedList",
    "DRAResourceClaimDeviceStatus",
    "DRAResourceClaimGranularStatusAuthorization",
    "DRASchedulerFilterTimeout",
    "DynamicResourceAllocation",
}
"""What is on in Kubernetes 1.37 unless turned off."""

PROFILES = {
    "default": FeatureGates(DEFAULT_GATES),
    "all": FeatureGates(
        DEFAULT_GATES
        | {
            "DRADerivedAttributes",
            "DRADeviceCompatibilityGroups",
            "DRAFractionalCapacityRange",
            "DRAListTypeAttributes",
            "DRANodeAllocatableResources",
            "DRAOptionalNodeOperations",
            "DRAPartitionableDevicesType",
            "DRAResourcePoolStatus",
            "DRAWorkloadResourceClaims",
        }
    ),
}

OTHER_KINDS = {"ResourcePoolStatusRequest"}
"""Not served by dray."""


is_mine = has_keys("operation object -allow")


def iter_cases(paths: list[Path]) -> Iterator[Case]:
    for vector, profile in iter_vectors(paths):
        yield Case(f"{vector['kind']} {vector['name']} ({profile})", partial(check_vector, vector, PROFILES[profile]))


def iter_vectors(paths: list[Path]) -> Iterator[tuple[dict[str, Any], str]]:
    for _, content in iter_data(paths, is_mine):
        for vector in content if isinstance(content, list) else []:
            for profile in PROFILES:
                if profile in (vector["gateProfiles"] or ()) and vector["kind"] not in OTHER_KINDS:
                    yield vector, profile


def check_vector(vector: dict[str, Any], gates: FeatureGates) -> str | None:
    parts = [describe(expected_answer(vector), our_answer(vector, run_vector(vector, gates)))]
    for version, errors in vector.get("errorsByVersion", {}).items():
        outcome, _ = run_vector(vector, gates, version)
        ours = outcome.errors if outcome is not None else []
        difference = describe(
            {f"errors in {version}": _count((error["type"], error["field"]) for error in errors)},
            {f"errors in {version}": _count((error.type.reason, error.field) for error in ours)},
        )
        parts.append(difference)
    return "; ".join(filter(None, parts)) or None


Run = tuple[Outcome[Any] | None, list[dict[str, Any]]]
"""The outcome, None for a bad request, and the questions that the authorizer was asked."""


def run_vector(vector: dict[str, Any], gates: FeatureGates, version: str = "") -> Run:
    calls: list[dict[str, Any]] = []
    recorded = vector.get("authorizerCalls", [])

    def authorize(access: Access) -> Decision:
        decision = decide(vector, access)
        calls.append({"allowed": decision.allowed, **access._asdict()})
        return decision

    context = RequestContext(
        now=NOW,
        gates=gates,
        version=version or vector["requestVersion"],
        namespace=vector.get("requestNamespace", ""),
        namespace_labels=vector.get("namespaceLabels") or {},
        requester=Requester(
            authorize,
            user=vector.get("user") or (recorded[0]["user"] if recorded else "test-user"),
            extra={key: tuple(values) for key, values in vector.get("userExtra", {}).items()},
            verb=vector.get("verb", "update"),
        ),
    )
    new = _decode(vector["object"], version)
    try:
        if vector["operation"] == "create":
            return create(new, context), calls
        write = update if vector["operation"] == "update" else update_status
        return write(new, _decode(vector["oldObject"], version), context), calls
    except BadRequest:
        return None, calls


def decide(vector: dict[str, Any], access: Access) -> Decision:
    """By the rules that the vector gives, or as it was answered when it was recorded."""
    if "allow" in vector:
        allowed = any(
            rule["verb"] == access.verb
            and rule["subresource"] == access.subresource
            and rule["namespace"] in ("*", access.namespace)
            and rule["name"] in ("*", access.name)
            for rule in vector["allow"]
        )
        return Decision(allowed)
    for call in vector.get("authorizerCalls", []):
        if read_access(call) == access:
            return Decision(call["allowed"], call.get("reason", ""))
    return Decision(True)


def _decode(obj: dict[str, Any], version: str) -> Any:
    data = json.dumps(obj, separators=(",", ":")).encode()
    if version:
        data = encode_as(read_object(data, early=False).value, version)
    return decode_object(data, now=NOW, early=False)


def expected_answer(vector: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "errors": _count((error["type"], error["field"]) for error in vector["errors"]),
    }
    if "authorizerCalls" in vector:
        answer["authorizerCalls"] = [
            {"allowed": call["allowed"], **read_access(call)._asdict()} for call in vector["authorizerCalls"]
        ]
    if "result" in vector:
        answer["result"] = _comparable(vector["result"])
        answer["warnings"] = vector.get("warnings", [])
    if vector.get("requestError", "").startswith("400"):
        answer["requestError"] = "400"
    return answer


def our_answer(vector: dict[str, Any], run: Run) -> dict[str, Any]:
    outcome, calls = run
    answer: dict[str, Any] = {"errors": {}}
    if "authorizerCalls" in vector:
        answer["authorizerCalls"] = calls
    if outcome is None:
        answer["requestError"] = "400"
        return answer
    answer["errors"] = _count((error.type.reason, error.field) for error in outcome.errors)
    if outcome.accepted:
        stored = encode_as(outcome.object, vector["requestVersion"]).decode().replace(NOW, "<now>")
        answer["result"] = _comparable(json.loads(stored))
        answer["warnings"] = outcome.warnings
    return answer


def read_access(call: dict[str, Any]) -> Access:
    return Access(
        call["verb"], call["subresource"], call["namespace"], call["name"], call["apiGroup"], call["resource"]
    )


def _comparable(obj: dict[str, Any]) -> dict[str, Any]:
    """Without what the server adds, or what isn't recorded."""
    unrecorded = ("uid", "creationTimestamp", "resourceVersion", "managedFields")
    metadata = {key: value for key, value in obj["metadata"].items() if key not in unrecorded}
    return {**obj, "metadata": metadata}


def _count(pairs: Any) -> dict[str, int]:
    return {f"{kind} {field}": count for (kind, field), count in Counter(pairs).items()}


def find_wording_differences(paths: list[Path]) -> Iterator[str]:
    """Vectors whose errors are the right ones, said in other words."""
    for vector, profile in iter_vectors(paths):
        outcome, _ = run_vector(vector, PROFILES[profile])
        if outcome is None:
            continue
        expected = Counter((error["field"], error["message"]) for error in vector["errors"])
        ours = Counter((error.field, error.message) for error in outcome.errors)
        if expected != ours:
            yield f"{vector['kind']} {vector['name']} ({profile}): want {expected - ours}, we have {ours - expected}"
