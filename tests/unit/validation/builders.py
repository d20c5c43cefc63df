"""Small objects to break, and verbs to say what is expected of them."""

from __future__ import annotations

from typing import Any

from dray.api.codec import decode_object
from dray.api.features import ALL_GATES, FeatureGates
from dray.validation.outcome import Outcome, RequestContext
from dray.validation.strategy import create, update, update_status

NOW = "2026-08-01T00:00:00Z"
NAMESPACED = ("ResourceClaim", "ResourceClaimTemplate")


def make(kind: str, spec: dict[str, Any], *, status: dict[str, Any] | None = None, **metadata: Any) -> Any:
    namespace = {"namespace": "default"} if kind in NAMESPACED else {}
    obj = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": "it", "resourceVersion": "1", **namespace, **metadata},
        "spec": spec,
    }
    if status is not None:
        obj["status"] = status
    return decode_object(obj, now=NOW)


def make_request(name: str = "gpu", **details: Any) -> dict[str, Any]:
    return {"name": name, "exactly": {"deviceClassName": "gpus", **details}}


def make_claim(*requests: dict[str, Any], status: dict[str, Any] | None = None, **devices: Any) -> Any:
    return make("ResourceClaim", {"devices": {"requests": requests or [make_request()], **devices}}, status=status)


def make_template(*requests: dict[str, Any], metadata: dict[str, Any] | None = None) -> Any:
    spec = {"devices": {"requests": requests or [make_request()]}}
    return make("ResourceClaimTemplate", {"metadata": metadata or {}, "spec": spec})


def make_slice(*devices: dict[str, Any], **spec: Any) -> Any:
    pool = {"name": "pool", "generation": 1, "resourceSliceCount": 1}
    content = {"driver": "dra.example.com", "pool": pool, "nodeName": "node", "devices": devices, **spec}
    return make("ResourceSlice", {name: value for name, value in content.items() if value is not None})


def make_device(name: str = "gpu-0", **content: Any) -> dict[str, Any]:
    return {"name": name, **content}


def make_allocation(*devices: str, **changes: Any) -> dict[str, Any]:
    results = [
        {"request": "gpu", "driver": "dra.example.com", "pool": "pool", "device": device, **changes}
        for device in devices
    ]
    return {"devices": {"results": results}}


def make_context(gates: FeatureGates = ALL_GATES, **changes: Any) -> RequestContext:
    return RequestContext(now=NOW, gates=gates, **{"namespace": "default", **changes})


def without(*gates: str) -> FeatureGates:
    return ALL_GATES.with_changes(dict.fromkeys(gates, False))


def created(obj: Any, **changes: Any) -> Outcome[Any]:
    return create(obj, make_context(**changes))


def updated(obj: Any, old: Any, **changes: Any) -> Outcome[Any]:
    return update(obj, old, make_context(**changes))


def status_updated(obj: Any, old: Any, **changes: Any) -> Outcome[Any]:
    return update_status(obj, old, make_context(**changes))


def expect_accepted(outcome: Outcome[Any]) -> Any:
    assert [str(error) for error in outcome.errors] == []
    return outcome.object


def expect_errors(outcome: Outcome[Any], *expected: str) -> None:
    """Each expected text is the beginning of one error, and there are no others."""
    errors = [str(error) for error in outcome.errors]
    assert len(errors) == len(expected), errors
    for text in expected:
        assert any(error.startswith(text) for error in errors), (text, errors)
