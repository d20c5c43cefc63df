"""The small kinds of core/v1, coordination and rbac: their defaults and the few rules that they have."""

from __future__ import annotations

import base64
import re
from typing import Final

from dray.api.meta import Json
from dray.api.names import check_dns_label
from dray.api.quantities import Quantity
from dray.apiserver.strategies import Carried, WriteContext
from dray.validation.fields import (
    SPEC,
    Errors,
    Path,
    byte_length,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
)
from dray.validation.metadata import IMMUTABLE, path_segment_name
from dray.validation.names import label_key_problems, label_value_problems

NAMESPACE_FINALIZER: Final = "kubernetes"
NAMESPACE_NAME_LABEL: Final = "kubernetes.io/metadata.name"
_MAX_DATA: Final = 1 << 20
_DATA_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
_DATA_KEY_PROBLEM: Final = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
    "or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_SUBJECT_KINDS: Final = ("ServiceAccount", "User", "Group")
RBAC_GROUP: Final = "rbac.authorization.k8s.io"


def label_name(name: str, prefix: bool) -> tuple[str, ...]:
    """The rule for names of namespaces: one DNS label."""
    return check_dns_label(name[:-2] + "a" if prefix and len(name) > 1 and name.endswith("-") else name)


def _default_namespace(namespace: Json) -> None:
    name = namespace["metadata"].get("name")
    namespace.setdefault("spec", {})
    if name:
        namespace["metadata"]["labels"] = {**namespace["metadata"].get("labels", {}), NAMESPACE_NAME_LABEL: name}


def _prepare_namespace(namespace: Json, context: WriteContext) -> None:
    finalizers = namespace["spec"].get("finalizers") or []
    if NAMESPACE_FINALIZER not in finalizers:
        finalizers = [*finalizers, NAMESPACE_FINALIZER]
    namespace["spec"] = {**namespace["spec"], "finalizers": finalizers}
    namespace["status"] = {"phase": "Active"}
    _default_namespace(namespace)


def _keep_namespace_finalizers(namespace: Json, old: Json, context: WriteContext) -> None:
    """They change through the finalize subresource only."""
    namespace["spec"] = old["spec"]


def _check_namespace_status(namespace: Json, old: Json, errors: Errors) -> None:
    phase = namespace["status"].get("phase")
    deleting = bool(namespace["metadata"].get("deletionTimestamp"))
    wanted = "Terminating" if deleting else "Active"
    if phase != wanted:
        detail = f"may only be '{wanted}' if `deletionTimestamp` is {'not empty' if deleting else 'empty'}"
        errors.append(invalid(Path("status").child("phase"), phase or "", detail))


NAMESPACE_STRATEGY: Final = Carried(
    "",
    "Namespace",
    namespaced=False,
    name_rule=label_name,
    has_status=True,
    shows_deleted=True,
    default=_default_namespace,
    prepare_create=_prepare_namespace,
    prepare_update=_keep_namespace_finalizers,
    check_status=_check_namespace_status,
)


def _default_node(node: Json) -> None:
    node.setdefault("spec", {})
    node.setdefault("status", {})


def _check_node(node: Json, errors: Errors) -> None:
    seen: set[tuple[str, str]] = set()
    for position, taint in enumerate(node["spec"].get("taints") or ()):
        place = SPEC.child("taints").index(position)
        key, value, effect = (taint.get(name) or "" for name in ("key", "value", "effect"))
        errors.extend(invalid(place.child("key"), key, problem) for problem in label_key_problems(key))
        errors.extend(invalid(place.child("value"), value, problem) for problem in label_value_problems(value))
        if not effect:
            errors.append(required(place.child("effect")))
        elif effect not in _EFFECTS:
            errors.append(not_supported(place.child("effect"), effect, _EFFECTS))
        if (key, effect) in seen:
            errors.append(duplicate(place, taint))
        seen.add((key, effect))


NODE_STRATEGY: Final = Carried(
    "", "Node", namespaced=False, has_status=True, keeps_status_on_create=True, default=_default_node, check=_check_node
)


def _check_keys(data: Json, path: Path, errors: Errors) -> int:
    size = 0
    for key, value in data.items():
        size += byte_length(value)
        if not _DATA_KEY.fullmatch(key) or key in (".", ".."):
            errors.append(invalid(path.key(key), key, _DATA_KEY_PROBLEM))
    return size


def _check_config_map(config_map: Json, errors: Errors) -> None:
    text, binary = config_map.get("data") or {}, config_map.get("binaryData") or {}
    size = _check_keys(text, Path("data"), errors) + _check_keys(binary, Path("binaryData"), errors) * 3 // 4
    for key in sorted(text.keys() & binary.keys()):
        errors.append(invalid(Path("data").key(key), key, "duplicate of key present in binaryData"))
    if size > _MAX_DATA:
        errors.append(too_long(Path(""), _MAX_DATA))


def _check_frozen(obj: Json, old: Json, errors: Errors) -> None:
    """Config maps and secrets can be made immutable, for good."""
    if not old.get("immutable"):
        return
    if not obj.get("immutable"):
        errors.append(forbidden(Path("immutable"), "field is immutable when `immutable` is set"))
    for field in ("data", "binaryData"):
        if obj.get(field) != old.get(field):
            errors.append(forbidden(Path(field), "field is immutable when `immutable` is set"))


CONFIG_MAP_STRATEGY: Final = Carried("", "ConfigMap", check=_check_config_map, check_update=_check_frozen)


def _default_secret(secret: Json) -> None:
    """`stringData` is for writing only: it ends up in `data`."""
    plain = secret.pop("stringData", None)
    if plain:
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in plain.items()}
        secret["data"] = {**secret.get("data", {}), **encoded}
    secret.setdefault("type", "Opaque")


def _check_secret(secret: Json, errors: Errors) -> None:
    if _check_keys(secret.get("data") or {}, Path("data"), errors) * 3 // 4 > _MAX_DATA:
        errors.append(too_long(Path("data"), _MAX_DATA))


def _check_secret_update(secret: Json, old: Json, errors: Errors) -> None:
    if secret.get("type") != old.get("type"):
        errors.append(invalid(Path("type"), secret.get("type"), IMMUTABLE))
    _check_frozen(secret, old, errors)


SECRET_STRATEGY: Final = Carried(
    "", "Secret", default=_default_secret, check=_check_secret, check_update=_check_secret_update
)

SERVICE_ACCOUNT_STRATEGY: Final = Carried("", "ServiceAccount", shows_deleted=True)


def _default_quota(quota: Json) -> None:
    quota.setdefault("spec", {})
    quota.setdefault("status", {})


def _check_quota(quota: Json, errors: Errors) -> None:
    for name, text in (quota["spec"].get("hard") or {}).items():
        place = SPEC.child("hard").key(name)
        errors.extend(invalid(place, name, problem) for problem in label_key_problems(name))
        amount = Quantity.parse(text)
        if amount < Quantity.ZERO:
            errors.append(invalid(place, text, "must be greater than or equal to 0"))


RESOURCE_QUOTA_STRATEGY: Final = Carried(
    "", "ResourceQuota", has_status=True, shows_deleted=True, default=_default_quota, check=_check_quota
)


def _default_lease(lease: Json) -> None:
    lease.setdefault("spec", {})


def _check_lease(lease: Json, errors: Errors) -> None:
    duration = lease["spec"].get("leaseDurationSeconds")
    if duration is not None and duration <= 0:
        errors.append(invalid(SPEC.child("leaseDurationSeconds"), duration, "must be greater than 0"))
    transitions = lease["spec"].get("leaseTransitions")
    if transitions is not None and transitions < 0:
        errors.append(invalid(SPEC.child("leaseTransitions"), transitions, "must be greater than or equal to 0"))


LEASE_STRATEGY: Final = Carried(
    "coordination.k8s.io", "Lease", create_on_update=True, default=_default_lease, check=_check_lease
)


def _default_role(role: Json) -> None:
    role.setdefault("rules", None)


def _check_role(role: Json, errors: Errors) -> None:
    namespaced = role.get("kind") == "Role"
    for position, rule in enumerate(role.get("rules") or ()):
        place = Path("rules").index(position)
        if not rule.get("verbs"):
            errors.append(required(place.child("verbs"), "verbs must contain at least one value"))
        if rule.get("nonResourceURLs"):
            if namespaced:
                detail = "namespaced rules cannot apply to non-resource URLs"
                errors.append(invalid(place.child("nonResourceURLs"), rule["nonResourceURLs"], detail))
            if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
                detail = "rules cannot apply to both regular resources and non-resource URLs"
                errors.append(invalid(place.child("nonResourceURLs"), rule["nonResourceURLs"], detail))
            continue
        if not rule.get("apiGroups"):
            errors.append(required(place.child("apiGroups"), "resource rules must supply at least one api group"))
        if not rule.get("resources"):
            errors.append(required(place.child("resources"), "resource rules must supply at least one resource"))


def _default_binding(binding: Json) -> None:
    reference = binding.get("roleRef")
    if reference is not None and not reference.get("apiGroup"):
        reference["apiGroup"] = RBAC_GROUP
    for subject in binding.get("subjects") or ():
        if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
            subject["apiGroup"] = RBAC_GROUP


def _check_binding(binding: Json, errors: Errors) -> None:
    reference = binding.get("roleRef") or {}
    place = Path("roleRef")
    if reference.get("apiGroup") != RBAC_GROUP:
        errors.append(not_supported(place.child("apiGroup"), reference.get("apiGroup", ""), (RBAC_GROUP,)))
    kinds = ("ClusterRole",) if binding.get("kind") == "ClusterRoleBinding" else ("ClusterRole", "Role")
    if reference.get("kind") not in kinds:
        errors.append(not_supported(place.child("kind"), reference.get("kind", ""), kinds))
    if not reference.get("name"):
        errors.append(required(place.child("name")))
    for position, subject in enumerate(binding.get("subjects") or ()):
        place = Path("subjects").index(position)
        if not subject.get("name"):
            errors.append(required(place.child("name")))
        if subject.get("kind") not in _SUBJECT_KINDS:
            errors.append(not_supported(place.child("kind"), subject.get("kind", ""), _SUBJECT_KINDS))
        elif subject["kind"] == "ServiceAccount" and not subject.get("namespace") and binding["kind"] != "RoleBinding":
            errors.append(required(place.child("namespace")))


def _check_binding_update(binding: Json, old: Json, errors: Errors) -> None:
    if binding.get("roleRef") != old.get("roleRef"):
        errors.append(invalid(Path("roleRef"), binding.get("roleRef"), "cannot change roleRef"))


def rbac_strategy(kind: str) -> Carried:
    is_role = not kind.endswith("Binding")
    return Carried(
        RBAC_GROUP,
        kind,
        namespaced=not kind.startswith("Cluster"),
        name_rule=path_segment_name,
        create_on_update=True,
        default=_default_role if is_role else _default_binding,
        check=_check_role if is_role else _check_binding,
        check_update=_no_update_rule if is_role else _check_binding_update,
    )


def _no_update_rule(obj: Json, old: Json, errors: Errors) -> None:
    """Roles may change in any way."""
