"""Objects of resource.k8s.io in manifests: decoded, and judged as by a server that is asked to create them."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from dray.api.claims import ADMIN_ACCESS_LABEL, ResourceClaim, ResourceClaimTemplate
from dray.api.codec import find_kind
from dray.api.features import FeatureGates
from dray.api.meta import Time
from dray.api.poolstatus import ResourcePoolStatusRequest
from dray.api.strict import decode_strict
from dray.cli.findings import Finding, find_at, find_broken_rules
from dray.cli.sources import ManifestObject
from dray.validation import strategy
from dray.validation.outcome import RequestContext


def decode_device_kind(obj: ManifestObject, now: Time) -> tuple[Any, list[Finding]]:
    """The typed object, and what strict field validation has against the manifest. Raises DecodeError."""
    value, errors = decode_strict(obj.json_text, now=now)
    return value, [find_at(obj, error.path, str(error), show_field=False) for error in errors]


def check_device_kind(
    obj: ManifestObject, value: Any, gates: FeatureGates, now: Time
) -> Generator[Finding, None, Any | None]:
    """The rules that the object breaks. Returns what would be stored, if nothing speaks against it."""
    if isinstance(value, ResourcePoolStatusRequest):
        return None  # asked of a cluster, and there are no rules for it here
    outcome: Any = strategy.create(value, request_context(obj, value, gates, now))
    yield from find_broken_rules(obj, outcome.errors)
    return outcome.object if outcome.accepted else None


def request_context(obj: ManifestObject, value: Any, gates: FeatureGates, now: Time) -> RequestContext:
    return RequestContext(
        now=now,
        gates=gates,
        version=find_kind(obj.api_version, obj.kind).version,
        namespace=namespace_of(obj, isinstance(value, ResourceClaim | ResourceClaimTemplate)),
        # Whether a namespace allows admin access is a question to a cluster, not to a file.
        namespace_labels={ADMIN_ACCESS_LABEL: "true"},
    )


def namespace_of(obj: ManifestObject, namespaced: bool) -> str:
    return (obj.key.namespace or "default") if namespaced else ""
