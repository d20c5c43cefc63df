"""Pods: what an update may change, how long a deletion waits, and the subresources that write single fields."""

from __future__ import annotations

from typing import Final

from dray.api.errors import BadRequest, Conflict
from dray.api.meta import Json
from dray.apiserver.pod_checks import check_pod
from dray.apiserver.pod_defaults import admit_pod, default_pod, qos_class
from dray.apiserver.pod_diff import diff_pod_specs
from dray.apiserver.strategies import Carried, WriteContext
from dray.validation.fields import SPEC, STATUS, Errors, Path, forbidden, invalid, not_supported, required

_FINISHED: Final = ("Succeeded", "Failed")
_MUTABLE: Final = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` "
    "(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
    "previously negative)"
)


def _prepare_create(pod: Json, context: WriteContext) -> None:
    pod["spec"] = dict(pod["spec"])
    admit_pod(pod)
    pod["status"] = {"phase": "Pending", "qosClass": qos_class(pod["spec"])}
    if pod["spec"].get("schedulingGates"):
        pod["status"]["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": None,
                "lastTransitionTime": None,
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            }
        ]


def _check_update(pod: Json, old: Json, errors: Errors) -> None:
    before, after = old["spec"], pod["spec"]
    if before == after:
        return
    if len(before.get("containers") or ()) != len(after.get("containers") or ()):
        errors.append(forbidden(SPEC.child("containers"), "pod updates may not add or remove containers"))
        return
    if len(before.get("initContainers") or ()) != len(after.get("initContainers") or ()):
        errors.append(forbidden(SPEC.child("initContainers"), "pod updates may not add or remove containers"))
        return
    _check_deadline(after, before, errors)
    gated = bool(before.get("schedulingGates"))
    _check_gates(after, before, errors)
    munged = _with_allowed_changes(after, before, gated)
    if not errors and munged != before:
        detail = f"pod updates may not change fields other than {_MUTABLE}\n{diff_pod_specs(before, munged)}"
        errors.append(forbidden(SPEC, detail))


def _check_deadline(after: Json, before: Json, errors: Errors) -> None:
    new, old = after.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    place = SPEC.child("activeDeadlineSeconds")
    if new is not None and old is not None and new > old:
        errors.append(invalid(place, new, "must be less than or equal to previous value"))
    elif new is None and old is not None:
        errors.append(invalid(place, None, "must not update from a positive integer to nil value"))


def _check_gates(after: Json, before: Json, errors: Errors) -> None:
    known = {gate.get("name") for gate in before.get("schedulingGates") or ()}
    added = [gate for gate in after.get("schedulingGates") or () if gate.get("name") not in known]
    for gate in added:
        place = SPEC.child("schedulingGates")
        errors.append(forbidden(place, f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'"))


def _with_allowed_changes(after: Json, before: Json, gated: bool) -> Json:
    """The new spec with everything that may change put back to what it was."""
    munged = dict(after)
    for field in ("containers", "initContainers"):
        if field in after:
            olds = before.get(field) or ()
            munged[field] = [{**new, "image": old.get("image")} for new, old in zip(after[field], olds, strict=True)]
    _put_back(munged, before, "activeDeadlineSeconds")
    _put_back(munged, before, "schedulingGates")
    if before.get("terminationGracePeriodSeconds", 0) < 0 and after.get("terminationGracePeriodSeconds") == 1:
        _put_back(munged, before, "terminationGracePeriodSeconds")
    old_tolerations = before.get("tolerations") or []
    if all(toleration in (after.get("tolerations") or ()) for toleration in old_tolerations):
        _put_back(munged, before, "tolerations")
    if gated:  # a gated pod may still be narrowed down
        old_selector = before.get("nodeSelector") or {}
        if old_selector.items() <= (after.get("nodeSelector") or {}).items():
            _put_back(munged, before, "nodeSelector")
    return munged


def _put_back(munged: Json, before: Json, field: str) -> None:
    if field in before:
        munged[field] = before[field]
    else:
        munged.pop(field, None)


def _prepare_status(pod: Json, old: Json, context: WriteContext) -> None:
    pod["status"].setdefault("phase", old.get("status", {}).get("phase", "Pending"))
    pod["status"].setdefault("qosClass", qos_class(pod["spec"]))


def _check_status(pod: Json, old: Json, errors: Errors) -> None:
    known = {claim.get("name") for claim in pod["spec"].get("resourceClaims") or ()}
    for position, status in enumerate(pod["status"].get("resourceClaimStatuses") or ()):
        place = STATUS.child("resourceClaimStatuses").index(position)
        if status.get("name") not in known:
            detail = "must match the name of an entry in `spec.resourceClaims`"
            errors.append(invalid(place.child("name"), status.get("name", ""), detail))


POD_STRATEGY: Final = Carried(
    "",
    "Pod",
    has_status=True,
    counts_generations=True,
    shows_deleted=True,
    default=default_pod,
    prepare_create=_prepare_create,
    prepare_status=_prepare_status,
    check=check_pod,
    check_update=_check_update,
    check_status=_check_status,
)


def grace_period(pod: Json, asked: int | None) -> int:
    """Seconds that the node gets to stop the pod: none if it isn't on one, or is done already."""
    status, spec = pod.get("status", {}), pod["spec"]
    if not spec.get("nodeName") or status.get("phase") in _FINISHED:
        return 0
    seconds = spec.get("terminationGracePeriodSeconds", 30) if asked is None else asked
    return 1 if seconds < 0 else int(seconds)


def check_binding(binding: Json) -> Errors:
    errors: Errors = []
    target = binding.get("target") or {}
    if target.get("kind") not in (None, "", "Node"):
        errors.append(not_supported(Path("target").child("kind"), target["kind"], ("Node", "<empty>")))
    if not target.get("name"):
        errors.append(required(Path("target").child("name")))
    return errors


def bind_pod(pod: Json, binding: Json, now: str) -> Json:
    """The pod assigned to the binding's node. Raises Conflict if it has one, or is going away."""
    name = pod["metadata"]["name"]
    details = {"name": name, "kind": "pods/binding"}
    start = f'Operation cannot be fulfilled on pods/binding "{name}": '
    spec, metadata = pod["spec"], pod["metadata"]
    if metadata.get("deletionTimestamp"):
        raise Conflict(f"{start}pod {name} is being deleted, cannot be assigned to a host", details=details)
    if spec.get("nodeName"):
        raise Conflict(f'{start}pod {name} is already assigned to node "{spec["nodeName"]}"', details=details)
    if spec.get("schedulingGates"):
        raise Conflict(f"{start}pod {name} has non-empty .spec.schedulingGates", details=details)
    annotations = {**metadata.get("annotations", {}), **binding.get("metadata", {}).get("annotations", {})}
    labels = {**metadata.get("labels", {}), **binding.get("metadata", {}).get("labels", {})}
    bound_metadata = dict(metadata)
    for field, values in (("annotations", annotations), ("labels", labels)):
        if values:
            bound_metadata[field] = values
    return {
        **pod,
        "metadata": bound_metadata,
        "spec": {**spec, "nodeName": binding["target"]["name"]},
        "status": {**pod.get("status", {}), "conditions": _scheduled(pod, now)},
    }


def _scheduled(pod: Json, now: str) -> list[Json]:
    condition = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    conditions = pod.get("status", {}).get("conditions") or []
    return [*(other for other in conditions if other.get("type") != "PodScheduled"), condition]


def read_binding(body: Json) -> Json:
    if body.get("kind", "Binding") != "Binding":
        raise BadRequest(f"{body.get('kind')} cannot be handled as a Binding")
    return body
