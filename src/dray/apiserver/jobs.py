"""Jobs: the defaults of a run, the labels that tie its pods to it, and what stays as it was created."""

from __future__ import annotations

import copy
from typing import Final

from dray.api.meta import Json
from dray.apiserver.pod_checks import check_pod_spec
from dray.apiserver.pod_defaults import default_pod_spec
from dray.apiserver.strategies import Carried, WriteContext
from dray.validation.fields import SPEC, Errors, ErrorType, FieldError, invalid, not_supported, required
from dray.validation.metadata import IMMUTABLE

_UID_LABEL: Final = "batch.kubernetes.io/controller-uid"
_NAME_LABEL: Final = "batch.kubernetes.io/job-name"
_OLD_UID_LABEL: Final = "controller-uid"
_OLD_NAME_LABEL: Final = "job-name"
_COMPLETION_MODES: Final = ("Indexed", "NonIndexed")


def _default_job(job: Json) -> None:
    spec = job.setdefault("spec", {})
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "TerminatingOrFailed")
    template = spec.setdefault("template", {})
    template.setdefault("metadata", {})
    restart_policy = template.get("spec", {}).get("restartPolicy")
    default_pod_spec(template.setdefault("spec", {}))
    if restart_policy is None:
        # A job must choose: `Always`, the default of pods, makes no sense for it.
        del template["spec"]["restartPolicy"]
    job.setdefault("status", {})


def _prepare_create(job: Json, context: WriteContext) -> None:
    spec = job["spec"]
    if spec.get("manualSelector"):
        return
    uid, name = context.uid, job["metadata"].get("name", "")
    template = spec["template"]
    labels = dict(template["metadata"].get("labels") or {})
    labels |= {_OLD_UID_LABEL: uid, _UID_LABEL: uid, _OLD_NAME_LABEL: name, _NAME_LABEL: name}
    # A new spec, since a name that is taken makes the same body be prepared again.
    job["spec"] = {
        **spec,
        "template": {**template, "metadata": {**template["metadata"], "labels": labels}},
        "selector": {"matchLabels": {_UID_LABEL: uid}},
    }


def _check_job(job: Json, errors: Errors) -> None:
    spec = job["spec"]
    for field in ("parallelism", "completions", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished"):
        if (spec.get(field) or 0) < 0:
            detail = "must be greater than or equal to 0"
            errors.append(invalid(SPEC.child(field), spec[field], detail, origin="minimum"))
    if spec.get("completionMode") not in _COMPLETION_MODES:
        errors.append(not_supported(SPEC.child("completionMode"), spec["completionMode"], _COMPLETION_MODES))
    place = SPEC.child("template").child("spec")
    template = spec["template"]["spec"]
    policy = template.get("restartPolicy", "")
    if policy not in ("OnFailure", "Never"):
        if policy:
            errors.append(not_supported(place.child("restartPolicy"), policy, ("OnFailure", "Never")))
        else:
            detail = 'valid values: "OnFailure", "Never"'
            errors.append(FieldError(ErrorType.REQUIRED, str(place.child("restartPolicy")), "", detail))
    check_pod_spec({**template, "restartPolicy": "Never"}, place, errors)
    if not spec.get("selector"):
        errors.append(required(SPEC.child("selector")))


def _check_update(job: Json, old: Json, errors: Errors) -> None:
    before, after = old["spec"], job["spec"]
    for field in ("completions", "selector", "completionMode"):
        if after.get(field) != before.get(field) and not (field == "completions" and _is_elastic(after)):
            errors.append(invalid(SPEC.child(field), after.get(field), IMMUTABLE))
    if after["template"] != before["template"] and not (before.get("suspend") and _only_scheduling(job, old)):
        errors.append(invalid(SPEC.child("template"), after["template"], IMMUTABLE))


def _is_elastic(spec: Json) -> bool:
    """Indexed jobs may grow and shrink, with completions equal to parallelism."""
    return spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")


def _only_scheduling(job: Json, old: Json) -> bool:
    """A suspended job's template may change where and when its pods are scheduled."""
    new, before = copy.deepcopy(job["spec"]["template"]), copy.deepcopy(old["spec"]["template"])
    for template in (new, before):
        for field in ("nodeSelector", "tolerations", "schedulingGates", "affinity"):
            template["spec"].pop(field, None)
        template.pop("metadata", None)
    return bool(new == before)


JOB_STRATEGY: Final = Carried(
    "batch",
    "Job",
    has_status=True,
    counts_generations=True,
    default=_default_job,
    prepare_create=_prepare_create,
    check=_check_job,
    check_update=_check_update,
)
