"""What the server does to metadata and status before it judges an object."""

from __future__ import annotations

from msgspec.structs import replace

from dray.api.claims import ResourceClaim
from dray.api.devices import SharedDeviceID
from dray.api.errors import BadRequest
from dray.api.features import FeatureGates
from dray.api.meta import ObjectMeta


def resolve_namespace(meta: ObjectMeta, namespace: str) -> ObjectMeta:
    """The namespace of the request, which is empty for cluster-scoped kinds. Raises BadRequest if they disagree."""
    if meta.namespace == namespace:
        return meta
    if meta.namespace and namespace:
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
    return replace(meta, namespace=namespace)


def wipe_system_fields(meta: ObjectMeta) -> ObjectMeta:
    """On create these are the server's alone."""
    return replace(
        meta,
        uid="",
        creation_timestamp=None,
        deletion_timestamp=None,
        deletion_grace_period_seconds=None,
        self_link="",
    )


def keep_system_fields(meta: ObjectMeta, old: ObjectMeta) -> ObjectMeta:
    """On update a client can't change these; a different uid is left for validation to refuse."""
    changes: dict[str, object] = {}
    if not meta.uid:
        changes["uid"] = old.uid
    if old.creation_timestamp is not None:
        changes["creation_timestamp"] = old.creation_timestamp
    if old.deletion_timestamp is not None:
        changes["deletion_timestamp"] = old.deletion_timestamp
    if meta.deletion_grace_period_seconds is None:
        changes["deletion_grace_period_seconds"] = old.deletion_grace_period_seconds
    return replace(meta, **changes)


def reset_for_status(meta: ObjectMeta, old: ObjectMeta) -> ObjectMeta:
    """A status update leaves metadata as it is."""
    return replace(
        meta,
        deletion_timestamp=old.deletion_timestamp,
        generation=old.generation,
        self_link=old.self_link,
        labels=old.labels,
        annotations=old.annotations,
        finalizers=old.finalizers,
        owner_references=old.owner_references,
    )


def drop_deallocated_devices(claim: ResourceClaim, old: ResourceClaim, gates: FeatureGates) -> ResourceClaim:
    """Remove the status of devices that the claim no longer has, so that whoever deallocates need not know of it."""
    if "DRAResourceClaimDeviceStatus" not in gates and not old.status.devices:
        return claim
    gone = _allocated(old) - _allocated(claim)
    if not gone:
        return claim
    devices = tuple(
        device
        for device in claim.status.devices
        if SharedDeviceID(device.driver, device.pool, device.device, device.share_id or "") not in gone
    )
    return replace(claim, status=replace(claim.status, devices=devices))


def _allocated(claim: ResourceClaim) -> set[SharedDeviceID]:
    if claim.status.allocation is None:
        return set()
    return {result.shared_device_id for result in claim.status.allocation.devices.results}
