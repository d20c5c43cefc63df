"""Small objects for tests, as plain JSON: what isn't said gets a sensible value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dray.api.meta import RESOURCE_GROUP, Json

DRIVER = "gpu.example.com"
V1 = f"{RESOURCE_GROUP}/v1"


def make_device(name: str, *, capacity: Mapping[str, str] | None = None, **attributes: bool | int | str) -> Json:
    """Keyword arguments are attributes, by their Python type."""
    kinds = {bool: "bool", int: "int", str: "string"}
    device: Json = {"name": name}
    if attributes:
        device["attributes"] = {key: {kinds[type(value)]: value} for key, value in attributes.items()}
    if capacity:
        device["capacity"] = {key: {"value": value} for key, value in capacity.items()}
    return device


def make_slice(node: str, devices: Sequence[Json | str], *, driver: str = DRIVER, name: str = "", **spec: Any) -> Json:
    """A complete pool of one slice, named after the node."""
    return {
        "apiVersion": V1,
        "kind": "ResourceSlice",
        "metadata": {"name": name or f"{node}-{driver}"},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [make_device(item) if isinstance(item, str) else item for item in devices],
            **spec,
        },
    }


def make_class(name: str = DRIVER, expression: str = "") -> Json:
    return {
        "apiVersion": V1,
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": expression or f'device.driver == "{DRIVER}"'}}]},
    }


def make_request(
    name: str = "gpu", *, count: int = 1, selector: str = "", class_name: str = DRIVER, **more: Any
) -> Json:
    exactly: Json = {"deviceClassName": class_name, "allocationMode": "ExactCount", "count": count, **more}
    if selector:
        exactly["selectors"] = [{"cel": {"expression": selector}}]
    return {"name": name, "exactly": exactly}


def make_claim_spec(*requests: Json, constraints: Sequence[Json] = ()) -> Json:
    devices: Json = {"requests": list(requests) or [make_request()]}
    if constraints:
        devices["constraints"] = list(constraints)
    return {"devices": devices}


def make_claim(
    name: str = "claim", *requests: Json, namespace: str = "default", constraints: Sequence[Json] = ()
) -> Json:
    return {
        "apiVersion": V1,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": make_claim_spec(*requests, constraints=constraints),
    }


def make_template(
    name: str = "template", *requests: Json, namespace: str = "default", constraints: Sequence[Json] = ()
) -> Json:
    return {
        "apiVersion": V1,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"spec": make_claim_spec(*requests, constraints=constraints)},
    }


def make_pod(
    name: str = "pod",
    *,
    namespace: str = "default",
    template: str = "",
    claim: str = "",
    requests: Mapping[str, str] | None = None,
    **spec: Any,
) -> Json:
    """A pod with one container; with a template or a claim it uses that as `gpu`."""
    resources: Json = {"requests": dict(requests)} if requests else {}
    pod: Json = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": [{"name": "main", "image": "none", "resources": resources}], **spec},
    }
    if template or claim:
        source = {"resourceClaimTemplateName": template} if template else {"resourceClaimName": claim}
        pod["spec"]["resourceClaims"] = [{"name": "gpu", **source}]
        resources["claims"] = [{"name": "gpu"}]
    return pod


def make_node(name: str, *, labels: Mapping[str, str] | None = None, capacity: Mapping[str, str] | None = None) -> Json:
    amounts = dict(capacity or {"cpu": "16", "memory": "64Gi", "pods": "110"})
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
