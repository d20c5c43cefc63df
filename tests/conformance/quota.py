"""Quota usage of claims."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from dray.api.claims import ResourceClaim
from dray.api.classes import DeviceClass
from dray.api.codec import decode_as, read_object
from dray.api.features import ALL_GATES, FeatureGates
from dray.api.pods import Pod, view_pod
from dray.validation.quota import ExtendedResources, claim_usage, extended_resources, matching_resources
from tests.conformance.differences import describe
from tests.conformance.runner import Case, has_keys, iter_data

NOW = datetime(2026, 8, 1, 12, tzinfo=UTC)


is_mine = has_keys("usage", "matchingResources")


def iter_cases(paths: list[Path]) -> Iterator[Case]:
    for _, data in iter_data(paths, is_mine):
        for vector in data.get("usage", []):
            yield Case(f"usage {vector['name']}", partial(check_usage, vector))
        for position, vector in enumerate(data.get("matchingResources", [])):
            yield Case(f"matchingResources {position}", partial(check_matching, vector))


def check_usage(vector: dict[str, Any]) -> str | None:
    pods = [view_pod(pod) for pod in vector.get("pods") or []]
    owned = [decode_as(ResourceClaim, claim) for claim in vector.get("ownedClaims") or []]
    if vector.get("noDefaulting"):
        claim: ResourceClaim = read_object(vector["claim"]).value
    else:
        claim = decode_as(ResourceClaim, vector["claim"])

    def find_pod(namespace: str, name: str) -> Pod | None:
        return next((pod for pod in pods if pod.metadata.key == (namespace, name)), None)

    def find_owned(namespace: str, uid: str) -> list[ResourceClaim]:
        return owned

    usage = claim_usage(claim, extended(vector), find_pod, find_owned, NOW, gates(vector))
    ours = {name: str(quantity) for name, quantity in usage.items()}
    if ours in vector.get("usageAlternatives", []):
        return None
    return describe(vector["usage"], ours)


def check_matching(vector: dict[str, Any]) -> str | None:
    ours = matching_resources(vector["hard"], extended(vector), gates(vector))
    return describe({"matching": vector["matching"]}, {"matching": ours})


def extended(vector: dict[str, Any]) -> ExtendedResources:
    return extended_resources(decode_as(DeviceClass, item) for item in vector.get("deviceClasses") or [])


def gates(vector: dict[str, Any]) -> FeatureGates:
    return ALL_GATES.with_changes({"DRAExtendedResource": vector.get("draExtendedResource", True)})
