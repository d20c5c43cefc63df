"""Rules for pods: the parts that matter to scheduling and claims in full, the rest lightly."""

from __future__ import annotations

from typing import Final

from dray.api.meta import Json
from dray.api.names import check_dns_label, check_dns_subdomain
from dray.api.quantities import Quantity
from dray.apiserver.pod_defaults import iter_containers
from dray.validation.fields import (
    SPEC,
    Errors,
    ErrorType,
    FieldError,
    Path,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from dray.validation.metadata import check_labels
from dray.validation.names import label_key_problems, label_value_problems
from dray.validation.rendering import JsonText

_RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION_POLICIES: Final = ("Never", "PreemptLowerPriority")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_MAX_PORT: Final = 65535
_LIST_SEPARATOR: Final = ", "


def check_pod(pod: Json, errors: Errors) -> None:
    check_pod_spec(pod["spec"], SPEC, errors)


def check_pod_spec(spec: Json, path: Path, errors: Errors) -> None:
    """Claims come before containers, so that a container's reference to a bad claim reads well."""
    volumes = _check_volumes(spec, path, errors)
    claims = _check_claims(spec, path, errors)
    if not spec.get("containers"):
        errors.append(required(path.child("containers")))
    _check_containers(spec, path, errors, claims, volumes)
    _check_choice(spec, "restartPolicy", _RESTART_POLICIES, path, errors)
    _check_choice(spec, "dnsPolicy", _DNS_POLICIES, path, errors)
    if "preemptionPolicy" in spec:
        _check_choice(spec, "preemptionPolicy", _PREEMPTION_POLICIES, path, errors)
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        detail = "must be greater than or equal to 0"
        place = path.child("terminationGracePeriodSeconds")
        errors.append(invalid(place, spec["terminationGracePeriodSeconds"], detail, origin="minimum"))
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline < 1 << 31:
        detail = "must be between 1 and 2147483647, inclusive"
        errors.append(invalid(path.child("activeDeadlineSeconds"), deadline, detail))
    check_labels(spec.get("nodeSelector") or {}, path.child("nodeSelector"), errors)
    _check_names(spec, path, errors)
    _check_tolerations(spec.get("tolerations") or [], path.child("tolerations"), errors)
    _check_gates(spec.get("schedulingGates") or [], path.child("schedulingGates"), errors)


def _check_choice(spec: Json, field: str, choices: tuple[str, ...], path: Path, errors: Errors) -> None:
    value = spec.get(field)
    if not value:
        errors.append(required(path.child(field)))
    elif value not in choices:
        errors.append(not_supported(path.child(field), value, sorted(choices)))


def _check_names(spec: Json, path: Path, errors: Errors) -> None:
    for field in ("nodeName", "serviceAccountName", "schedulerName", "priorityClassName"):
        name = spec.get(field)
        if name:
            rule = label_key_problems if field == "schedulerName" else check_dns_subdomain
            errors.extend(invalid(path.child(field), name, problem) for problem in rule(name))
    for field in ("hostname", "subdomain"):
        if spec.get(field):
            problems = check_dns_label(spec[field])
            errors.extend(invalid(path.child(field), spec[field], problem) for problem in problems)


def _check_volumes(spec: Json, path: Path, errors: Errors) -> set[str]:
    seen: set[str] = set()
    for position, volume in enumerate(spec.get("volumes") or ()):
        place = path.child("volumes").index(position)
        name = volume.get("name") or ""
        _check_list_name(name, place, errors, seen)
        if len(set(volume) - {"name"}) > 1:
            errors.append(forbidden(place, "may not specify more than 1 volume type"))
    return seen


def _check_list_name(name: str, place: Path, errors: Errors, seen: set[str]) -> None:
    """The name of an entry in a list by name: a DNS label that occurs once."""
    if not name:
        errors.append(required(place.child("name")))
    elif problems := check_dns_label(name):
        errors.extend(invalid(place.child("name"), name, problem) for problem in problems)
    elif name in seen:
        errors.append(duplicate(place.child("name"), name))
    seen.add(name)


def _check_claims(spec: Json, path: Path, errors: Errors) -> set[str]:
    seen: set[str] = set()
    for position, claim in enumerate(spec.get("resourceClaims") or ()):
        place = path.child("resourceClaims").index(position)
        name = claim.get("name") or ""
        _check_list_name(name, place, errors, seen)
        direct, template = claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName")
        if direct is not None and template is not None:
            detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            errors.append(invalid(place, _internal_claim(claim), detail))
        elif direct is None and template is None:
            detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            errors.append(invalid(place, _internal_claim(claim), detail))
        for field, value in (("resourceClaimName", direct), ("resourceClaimTemplateName", template)):
            if value is not None:
                problems = check_dns_subdomain(value)
                errors.extend(invalid(place.child(field), value, problem) for problem in problems)
    return seen


def _internal_claim(claim: Json) -> Json:
    """Kubernetes shows the claim in its internal form."""
    return {
        "Name": claim.get("name") or "",
        "ResourceClaimName": claim.get("resourceClaimName"),
        "ResourceClaimTemplateName": claim.get("resourceClaimTemplateName"),
    }


def _check_containers(spec: Json, path: Path, errors: Errors, claims: set[str], volumes: set[str]) -> None:
    seen: set[str] = set()
    for field, position, container in iter_containers(spec):
        place = path.child(field).index(position)
        _check_list_name(container.get("name") or "", place, errors, seen)
        if not container.get("image"):
            errors.append(required(place.child("image")))
        _check_choice(container, "imagePullPolicy", _PULL_POLICIES, place, errors)
        _check_ports(container, place, errors)
        _check_variables(container, place, errors)
        _check_mounts(container, place, errors, volumes)
        _check_resources(container.get("resources") or {}, place.child("resources"), errors, claims)


def _check_ports(container: Json, path: Path, errors: Errors) -> None:
    for position, port in enumerate(container.get("ports") or ()):
        place = path.child("ports").index(position)
        number = port.get("containerPort") or 0
        if not number:
            errors.append(required(place.child("containerPort")))
        for field in ("containerPort", "hostPort"):
            if port.get(field) and not 1 <= port[field] <= _MAX_PORT:
                errors.append(invalid(place.child(field), port[field], "must be between 1 and 65535, inclusive"))
        if port.get("protocol") not in _PROTOCOLS:
            errors.append(not_supported(place.child("protocol"), port.get("protocol", ""), _PROTOCOLS))


def _check_variables(container: Json, path: Path, errors: Errors) -> None:
    for position, variable in enumerate(container.get("env") or ()):
        place = path.child("env").index(position)
        if not variable.get("name"):
            errors.append(required(place.child("name")))
        if variable.get("value") and variable.get("valueFrom"):
            errors.append(invalid(place.child("valueFrom"), "", "may not be specified when `value` is not empty"))


def _check_mounts(container: Json, path: Path, errors: Errors, volumes: set[str]) -> None:
    paths: set[str] = set()
    for position, mount in enumerate(container.get("volumeMounts") or ()):
        place = path.child("volumeMounts").index(position)
        name, target = mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            errors.append(required(place.child("name")))
        elif name not in volumes:
            errors.append(FieldError(ErrorType.NOT_FOUND, str(place.child("name")), name))
        if not target:
            errors.append(required(place.child("mountPath")))
        elif target in paths:
            errors.append(invalid(place.child("mountPath"), target, "must be unique"))
        paths.add(target)


def _check_resources(resources: Json, path: Path, errors: Errors, claims: set[str]) -> None:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for field, amounts in (("limits", limits), ("requests", requests)):
        for name, text in amounts.items():
            place = path.child(field).key(name)
            problems = label_key_problems(name)
            errors.extend(invalid(place, name, problem) for problem in problems)
            if Quantity.parse(text) < Quantity.ZERO:
                errors.append(invalid(place, text, "must be greater than or equal to 0"))
    for name, text in requests.items():
        limit = limits.get(name)
        if limit is None:
            continue
        amount, most = Quantity.parse(text), Quantity.parse(limit)
        if _is_extended(name) and amount != most:
            errors.append(invalid(path.child("requests"), text, f"must be equal to {name} limit of {limit}"))
        elif amount > most:
            detail = f"must be less than or equal to {name} limit of {limit}"
            errors.append(invalid(path.child("requests"), text, detail))
    _check_claim_references(resources.get("claims") or [], path.child("claims"), errors, claims)


def _is_extended(name: str) -> bool:
    domain, slash, _ = name.partition("/")
    return bool(slash) and not domain.endswith("kubernetes.io")


def _check_claim_references(references: list[Json], path: Path, errors: Errors, claims: set[str]) -> None:
    seen: set[tuple[str, str]] = set()
    for position, reference in enumerate(references):
        place = path.index(position)
        name, request = reference.get("name") or "", reference.get("request") or ""
        if not name:
            errors.append(required(place.child("name")))
        elif (name, request) in seen or (name, "") in seen or (not request and any(one == name for one, _ in seen)):
            shown = f"{name}/{request}" if request else name
            errors.append(duplicate(place, shown))
        elif name not in claims:
            detail = "must be one of the names in pod.spec.resourceClaims"
            detail += f": {_LIST_SEPARATOR.join(sorted(claims))}" if claims else " which is empty"
            errors.append(FieldError(ErrorType.NOT_FOUND, str(place), name, detail))
        seen.add((name, request))


def _check_tolerations(tolerations: list[Json], path: Path, errors: Errors) -> None:
    for position, toleration in enumerate(tolerations):
        place = path.index(position)
        key, operator = toleration.get("key", ""), toleration.get("operator") or "Equal"
        effect, value = toleration.get("effect", ""), toleration.get("value", "")
        if key:
            errors.extend(invalid(place.child("key"), key, problem) for problem in label_key_problems(key))
        elif operator != "Exists":
            detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            errors.append(invalid(place.child("operator"), JsonText(operator), detail))
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            errors.append(invalid(place.child("effect"), JsonText(effect), detail))
        match operator:
            case "Equal":
                problems = label_value_problems(value)
                errors.extend(invalid(place.child("operator"), value, problem) for problem in problems)
            case "Exists":
                if value:
                    detail = "value must be empty when `operator` is 'Exists'"
                    errors.append(invalid(place.child("operator"), JsonText(value), detail))
            case _:
                errors.append(not_supported(place.child("operator"), operator, ("Equal", "Exists")))
        if effect and effect not in _EFFECTS:
            errors.append(not_supported(place.child("effect"), effect, _EFFECTS))


def _check_gates(gates: list[Json], path: Path, errors: Errors) -> None:
    seen: set[str] = set()
    for position, gate in enumerate(gates):
        name = gate.get("name") or ""
        problems = label_key_problems(name)
        errors.extend(invalid(path.index(position), name, problem) for problem in problems)
        if name in seen:
            errors.append(duplicate(path.index(position), name))
        seen.add(name)
