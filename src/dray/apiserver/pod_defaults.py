"""Defaults of pods and pod templates: what Kubernetes fills in for an absent field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dray.api.meta import Json

_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE_DEFAULTS: Final = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_FILE_MODE: Final = 0o644
_TOLERATED: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_TOLERATION_SECONDS: Final = 300
_COMPUTE: Final = ("cpu", "memory")


def iter_containers(spec: Json) -> Iterator[tuple[str, int, Json]]:
    """All containers with the name of their list and their position in it."""
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for position, container in enumerate(spec.get(field) or ()):
            yield field, position, container


def default_pod_spec(spec: Json) -> None:
    """The API's own defaults; they hold for pods and for templates in other kinds."""
    for _, _, container in iter_containers(spec):
        _default_container(container)
    for volume in spec.get("volumes") or ():
        _default_volume(volume)
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    # Two spellings of one field, kept equal for old clients.
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account


def default_pod(pod: Json) -> None:
    spec = pod.setdefault("spec", {})
    default_pod_spec(spec)
    spec.setdefault("enableServiceLinks", True)
    pod.setdefault("status", {})


def admit_pod(pod: Json) -> None:
    """What Kubernetes' admission plugins add to a new pod: priority, and tolerations for nodes that are away."""
    spec = pod["spec"]
    spec.setdefault("priority", 0)
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    tolerations = list(spec.get("tolerations") or ())
    for key in _TOLERATED:
        if not any(_tolerates(toleration, key) for toleration in tolerations):
            tolerations.append(
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATION_SECONDS}
            )
    spec["tolerations"] = tolerations


def _tolerates(toleration: Json, key: str) -> bool:
    effect = toleration.get("effect") or "NoExecute"
    return effect == "NoExecute" and toleration.get("key", "") in ("", key)


def _default_container(container: Json) -> None:
    resources = container.setdefault("resources", {})
    limits = resources.get("limits")
    if limits:
        resources["requests"] = {**limits, **resources.get("requests", {})}
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
    for variable in container.get("env") or ():
        reference = (variable.get("valueFrom") or {}).get("fieldRef")
        if reference is not None:
            reference.setdefault("apiVersion", "v1")
    for name in _PROBES:
        if name in container:
            for field, value in _PROBE_DEFAULTS.items():
                container[name].setdefault(field, value)
            if "httpGet" in container[name]:
                container[name]["httpGet"].setdefault("path", "/")
                container[name]["httpGet"].setdefault("scheme", "HTTP")
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = _pull_policy(container.get("image", ""))


def _pull_policy(image: str) -> str:
    if "@" in image:
        return "IfNotPresent"
    tag = image.rpartition("/")[2].partition(":")[2]
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def _default_volume(volume: Json) -> None:
    if set(volume) <= {"name"}:
        volume["emptyDir"] = {}
    for source in ("secret", "configMap", "downwardAPI", "projected"):
        if source in volume:
            volume[source].setdefault("defaultMode", _FILE_MODE)
    if "hostPath" in volume:
        volume["hostPath"].setdefault("type", "")
    for part in volume.get("projected", {}).get("sources") or ():
        if "serviceAccountToken" in part:
            part["serviceAccountToken"].setdefault("expirationSeconds", 3600)


def qos_class(spec: Json) -> str:
    """Guaranteed if every container limits cpu and memory to what it requests, BestEffort if none asks for any."""
    asks, guaranteed = False, True
    for field, _, container in iter_containers(spec):
        if field == "ephemeralContainers":
            continue
        resources = container.get("resources") or {}
        requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
        for name in _COMPUTE:
            if not _is_zero(requests.get(name)) or not _is_zero(limits.get(name)):
                asks = True
            if _is_zero(limits.get(name)) or requests.get(name, limits.get(name)) != limits.get(name):
                guaranteed = False
    if not asks:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def _is_zero(quantity: str | None) -> bool:
    return quantity is None or quantity == "0"
