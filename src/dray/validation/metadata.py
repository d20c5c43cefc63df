"""Rules for what every object carries: names, labels, annotations, owners, finalizers, conditions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from dray.api.meta import Condition, ObjectMeta, OwnerReference
from dray.validation.fields import (
    Errors,
    FieldError,
    Path,
    byte_length,
    duplicate,
    forbidden,
    internal,
    invalid,
    not_supported,
    required,
    too_long,
)
from dray.validation.names import (
    dns_label_problems,
    label_key_problems,
    label_value_problems,
    path_segment_problems,
    subdomain_prefix_problems,
    subdomain_problems,
)
from dray.validation.rendering import quote

IMMUTABLE: Final = "field is immutable"

_TEMPLATE_FORBIDS: Final = {
    "name": "name",
    "generate_name": "generateName",
    "namespace": "namespace",
    "self_link": "selfLink",
    "uid": "uID",  # as Kubernetes writes it here
    "resource_version": "resourceVersion",
    "generation": "generation",
    "creation_timestamp": "creationTimestamp",
    "deletion_timestamp": "deletionTimestamp",
    "deletion_grace_period_seconds": "deletionGracePeriodSeconds",
    "owner_references": "ownerReferences",
    "finalizers": "finalizers",
    "managed_fields": "managedFields",
}

_EMPTY_META: Final = ObjectMeta()

NameRule = Callable[[str, bool], tuple[str, ...]]
"""Problems of a name; the flag says that more will be appended to it (`generateName`)."""

_MAX_ANNOTATION_BYTES: Final = 256 * 1024
_STANDARD_FINALIZERS: Final = frozenset({"kubernetes", "orphan", "foregroundDeletion"})
_CONDITION_STATUSES: Final = ("False", "True", "Unknown")
_MAX_REASON_BYTES: Final = 1024
_MAX_MESSAGE_BYTES: Final = 32 * 1024
_REASON_FORMAT: Final = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON: Final = re.compile(_REASON_FORMAT)
_REASON_PROBLEM: Final = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or "
    f"'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '{_REASON_FORMAT}')"
)


def subdomain_name(name: str, prefix: bool) -> tuple[str, ...]:
    """The rule for names of most kinds."""
    return subdomain_prefix_problems(name) if prefix else subdomain_problems(name)


def path_segment_name(name: str, prefix: bool) -> tuple[str, ...]:
    """The least that any name must be: usable in a URL."""
    return path_segment_problems(name, prefix)


def check_object_meta(
    meta: ObjectMeta, path: Path, errors: Errors, *, namespaced: bool, name_rule: NameRule = subdomain_name
) -> None:
    """All metadata of an object that is created, or of its new form in an update."""
    if meta.generate_name:
        for problem in name_rule(meta.generate_name, True):
            errors.append(invalid(path.child("generateName"), meta.generate_name, problem))
    if not meta.name:
        errors.append(required(path.child("name"), "name or generateName is required"))
    else:
        for problem in name_rule(meta.name, False):
            errors.append(invalid(path.child("name"), meta.name, problem))
    _check_common_meta(meta, path, errors, namespaced=namespaced)


def check_generated_object_meta(
    meta: ObjectMeta, path: Path, errors: Errors, *, name_rule: Callable[[str, Path], Errors]
) -> None:
    """Like `check_object_meta` for a cluster-scoped kind that only judges the name after it was generated."""
    if not meta.name:
        if meta.generate_name:
            problem = f"generateName was specified ({quote(meta.generate_name)}), but no name was generated"
            errors.append(internal(path.child("name"), problem))
        errors.append(required(path.child("name"), "name or generateName is required"))
    else:
        errors.extend(name_rule(meta.name, path.child("name")))
    _check_common_meta(meta, path, errors, namespaced=False)


def check_template_meta(meta: ObjectMeta, path: Path, errors: Errors) -> None:
    """Metadata inside a template: labels and annotations, nothing else may be set."""
    check_annotations(meta.annotations, path.child("annotations"), errors)
    check_labels(meta.labels, path.child("labels"), errors)
    for name, written in _TEMPLATE_FORBIDS.items():
        if getattr(meta, name) != getattr(_EMPTY_META, name):
            errors.append(forbidden(path.child(written), "cannot be set"))


def _check_common_meta(meta: ObjectMeta, path: Path, errors: Errors, *, namespaced: bool) -> None:
    if namespaced:
        if not meta.namespace:
            errors.append(required(path.child("namespace")))
        else:
            for problem in dns_label_problems(meta.namespace):
                errors.append(invalid(path.child("namespace"), meta.namespace, problem))
    elif meta.namespace:
        errors.append(forbidden(path.child("namespace"), "not allowed on this type"))
    if meta.generation < 0:
        detail = "must be greater than or equal to 0"
        errors.append(invalid(path.child("generation"), meta.generation, detail, origin="minimum"))
    if meta.labels:
        check_labels(meta.labels, path.child("labels"), errors)
    if meta.annotations:
        check_annotations(meta.annotations, path.child("annotations"), errors)
    if meta.owner_references:
        check_owner_references(meta.owner_references, path.child("ownerReferences"), errors)
    if meta.finalizers:
        check_finalizers(meta.finalizers, path.child("finalizers"), errors)


def check_object_meta_update(new: ObjectMeta, old: ObjectMeta, path: Path, errors: Errors) -> None:
    """What an update may change; also what of the new metadata is checked on every update."""
    if old.deletion_timestamp is not None:
        added = sorted(set(new.finalizers) - set(old.finalizers))
        if added:
            listed = ", ".join(quote(name) for name in added)
            detail = (
                "no new finalizers can be added if the object is being deleted, found new finalizers "
                f"[]string{{{listed}}}"
            )
            errors.append(forbidden(path.child("finalizers"), detail))
    if not new.resource_version:
        errors.append(invalid(path.child("resourceVersion"), "", "must be specified for an update"))
    if new.generation < old.generation:
        errors.append(invalid(path.child("generation"), new.generation, "must not be decremented"))
    if new.name != old.name:
        errors.append(invalid(path.child("name"), new.name, IMMUTABLE))
    if new.namespace != old.namespace:
        errors.append(invalid(path.child("namespace"), new.namespace, IMMUTABLE))
    for name, value, old_value in (
        ("uid", new.uid, old.uid),
        ("creationTimestamp", new.creation_timestamp, old.creation_timestamp),
        ("deletionTimestamp", new.deletion_timestamp, old.deletion_timestamp),
        ("deletionGracePeriodSeconds", new.deletion_grace_period_seconds, old.deletion_grace_period_seconds),
    ):
        if value != old_value:
            errors.append(invalid(path.child(name), value, IMMUTABLE, origin="immutable"))
    if new.labels:
        check_labels(new.labels, path.child("labels"), errors)
    if new.annotations:
        check_annotations(new.annotations, path.child("annotations"), errors)
    if new.owner_references:
        check_owner_references(new.owner_references, path.child("ownerReferences"), errors)


def check_labels(labels: Mapping[str, str], path: Path, errors: Errors) -> None:
    for key, value in labels.items():
        for problem in label_key_problems(key):
            errors.append(invalid(path, key, problem, origin="format=k8s-label-key"))
        for problem in label_value_problems(value):
            errors.append(invalid(path, value, problem, origin="format=k8s-label-value"))


def check_annotations(annotations: Mapping[str, str], path: Path, errors: Errors) -> None:
    size = 0
    for key, value in annotations.items():
        size += byte_length(key) + byte_length(value)
        for problem in label_key_problems(key.lower()):
            errors.append(invalid(path, key, problem, origin="format=k8s-label-key"))
    if size > _MAX_ANNOTATION_BYTES:
        errors.append(too_long(path, _MAX_ANNOTATION_BYTES))


def check_owner_references(references: tuple[OwnerReference, ...], path: Path, errors: Errors) -> None:
    controller = ""
    for position, reference in enumerate(references):
        _check_owner_reference(reference, path.index(position), errors)
        if not reference.controller:
            continue
        name = f"{reference.kind}/{reference.name}"
        if controller:
            detail = (
                'Only one reference can have Controller set to true. Found "true" in references for '
                f"{controller} and {name}"
            )
            errors.append(invalid(path, references, detail))
        else:
            controller = name


def _check_owner_reference(reference: OwnerReference, path: Path, errors: Errors) -> None:
    group, version = _split_api_version(reference.api_version)
    if not reference.api_version:
        errors.append(required(path.child("apiVersion"), "must not be empty"))
    elif not version:
        detail = "must be <group>/<version> or <version>"
        errors.append(invalid(path.child("apiVersion"), reference.api_version, detail))
    for name, value in (("kind", reference.kind), ("name", reference.name), ("uid", reference.uid)):
        if not value:
            errors.append(required(path.child(name), "must not be empty"))
    if (group, version, reference.kind) == ("", "v1", "Event"):
        errors.append(invalid(path, reference, "/v1, Kind=Event is disallowed from being an owner"))


def _split_api_version(text: str) -> tuple[str, str]:
    """Group and version; the version is empty if the text is no API version."""
    group, slash, version = text.rpartition("/")
    if not slash:
        return "", text
    return (group, version) if "/" not in group else (group, "")


def check_finalizers(finalizers: tuple[str, ...], path: Path, errors: Errors) -> None:
    for name in finalizers:
        for problem in label_key_problems(name):
            errors.append(invalid(path, name, problem))
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        errors.append(invalid(path, finalizers, detail))


def check_finalizer_names(finalizers: tuple[str, ...], path: Path, errors: Errors) -> None:
    """A finalizer without a domain must be one of Kubernetes' own. Asked by each kind beside the general rules."""
    for position, name in enumerate(finalizers):
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            errors.append(invalid(path.index(position), name, detail))


def check_conditions(conditions: tuple[Condition, ...], path: Path, errors: Errors) -> None:
    seen: set[str] = set()
    for position, condition in enumerate(conditions):
        place = path.index(position)
        if condition.type in seen:
            errors.append(duplicate(place, condition.type))
        seen.add(condition.type)
        errors.extend(_condition_errors(condition, place))


def _condition_errors(condition: Condition, path: Path) -> list[FieldError]:
    errors: Errors = []
    if not condition.type:
        errors.append(required(path.child("type"), "is required"))
    else:
        for problem in label_key_problems(condition.type):
            errors.append(invalid(path.child("type"), condition.type, problem, origin="format=k8s-label-key"))
    if not condition.status:
        errors.append(required(path.child("status")))
    elif condition.status not in _CONDITION_STATUSES:
        errors.append(not_supported(path.child("status"), condition.status, _CONDITION_STATUSES))
    if condition.observed_generation < 0:
        detail = "must be greater than or equal to zero"
        errors.append(invalid(path.child("observedGeneration"), condition.observed_generation, detail))
    if condition.last_transition_time is None:
        errors.append(required(path.child("lastTransitionTime")))
    if not condition.reason:
        errors.append(required(path.child("reason")))
    else:
        if not _REASON.fullmatch(condition.reason):
            errors.append(invalid(path.child("reason"), condition.reason, _REASON_PROBLEM))
        if byte_length(condition.reason) > _MAX_REASON_BYTES:
            errors.append(too_long(path.child("reason"), _MAX_REASON_BYTES))
    if byte_length(condition.message) > _MAX_MESSAGE_BYTES:
        errors.append(too_long(path.child("message"), _MAX_MESSAGE_BYTES))
    return errors
