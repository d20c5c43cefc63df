"""Shows what an update would change in a pod's spec: a unified diff of the form that Kubernetes uses internally.

Kubernetes' internal types bear Go names, list every field, and keep the host settings in the security context. The
order of fields is part of the message, since the diff gives line numbers.
"""

from __future__ import annotations

import difflib
import json
from typing import Any, Final

from dray.api.meta import Json

_ORDER: Final[dict[str, tuple[str, ...]]] = {
    "PodSpec": (
        "volumes:Volume",
        "initContainers:Container",
        "containers:Container",
        "ephemeralContainers:Container",
        "restartPolicy=",
        "terminationGracePeriodSeconds",
        "activeDeadlineSeconds",
        "dnsPolicy=",
        "nodeSelector",
        "serviceAccountName=",
        "automountServiceAccountToken",
        "nodeName=",
        "securityContext:PodSecurityContext",
        "imagePullSecrets:Named",
        "hostname=",
        "subdomain=",
        "setHostnameAsFQDN",
        "affinity:",
        "schedulerName=",
        "tolerations:Toleration",
        "hostAliases:",
        "priorityClassName=",
        "priority",
        "preemptionPolicy",
        "dnsConfig:",
        "readinessGates:",
        "runtimeClassName",
        "overhead",
        "enableServiceLinks",
        "topologySpreadConstraints:",
        "os:",
        "schedulingGates:Named",
        "evictionResponders:",
        "resourceClaims:PodResourceClaim",
        "resources:Resources",
        "hostnameOverride",
        "schedulingGroup:",
    ),
    "Container": (
        "name=",
        "image=",
        "command",
        "args",
        "workingDir=",
        "ports:Port",
        "envFrom:",
        "env:Env",
        "resources:Resources",
        "resizePolicy:",
        "restartPolicy",
        "restartPolicyRules:",
        "volumeMounts:VolumeMount",
        "volumeDevices:",
        "livenessProbe:",
        "readinessProbe:",
        "startupProbe:",
        "lifecycle:",
        "terminationMessagePath=",
        "terminationMessagePolicy=",
        "imagePullPolicy=",
        "securityContext:",
        "stdin=false",
        "stdinOnce=false",
        "tty=false",
    ),
    "Resources": ("limits", "requests", "claims:ClaimReference"),
    "ClaimReference": ("name=", "request="),
    "Port": ("name=", "hostPort=0", "containerPort=0", "protocol=", "hostIP="),
    "Env": ("name=", "value=", "valueFrom:"),
    "VolumeMount": (
        "name=",
        "readOnly=false",
        "recursiveReadOnly",
        "mountPath=",
        "subPath=",
        "mountPropagation",
        "subPathExpr=",
    ),
    "PodSecurityContext": (
        "hostNetwork=false",
        "hostPID=false",
        "hostIPC=false",
        "shareProcessNamespace",
        "hostUsers",
        "seLinuxOptions:",
        "windowsOptions:",
        "runAsUser",
        "runAsGroup",
        "runAsNonRoot",
        "supplementalGroups",
        "supplementalGroupsPolicy",
        "fsGroup",
        "sysctls:",
        "fsGroupChangePolicy",
        "seccompProfile:",
        "appArmorProfile:",
        "seLinuxChangePolicy",
    ),
    "Toleration": ("key=", "operator=", "value=", "effect=", "tolerationSeconds"),
    "PodResourceClaim": ("name=", "resourceClaimName", "resourceClaimTemplateName"),
    "Named": ("name=",),
    "Volume": (
        "name=",
        *(
            f"{source}:"
            for source in (
                "hostPath",
                "emptyDir",
                "gcePersistentDisk",
                "awsElasticBlockStore",
                "gitRepo",
                "secret",
                "nfs",
                "iscsi",
                "glusterfs",
                "persistentVolumeClaim",
                "rbd",
                "quobyte",
                "flexVolume",
                "cinder",
                "cephfs",
                "flocker",
                "downwardAPI",
                "fc",
                "azureFile",
                "configMap",
                "vsphereVolume",
                "azureDisk",
                "photonPersistentDisk",
                "projected",
                "portworxVolume",
                "scaleIO",
                "storageos",
                "csi",
                "ephemeral",
                "image",
            )
        ),
    ),
}
"""Fields in Go's order: `name` is null when absent, `name=x` then shows x, `name:Type` is an object or list of them."""

_GO_NAMES: Final = {
    "tty": "TTY",
    "dnsPolicy": "DNSPolicy",
    "dnsConfig": "DNSConfig",
    "os": "OS",
    "fsGroup": "FSGroup",
    "fsGroupChangePolicy": "FSGroupChangePolicy",
    "seLinuxOptions": "SELinuxOptions",
    "seLinuxChangePolicy": "SELinuxChangePolicy",
    "gcePersistentDisk": "GCEPersistentDisk",
    "awsElasticBlockStore": "AWSElasticBlockStore",
    "nfs": "NFS",
    "iscsi": "ISCSI",
    "rbd": "RBD",
    "cephfs": "CephFS",
    "fc": "FC",
    "csi": "CSI",
    "storageos": "StorageOS",
}
_HOST_SETTINGS: Final = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")


def diff_pod_specs(old: Json, new: Json) -> str:
    """The changed places with three lines around them."""
    before, after = _lines(old), _lines(new)
    lines = list(difflib.unified_diff(before, after, n=3, lineterm="\n"))
    return "".join(lines[2:])


def _lines(spec: Json) -> list[str]:
    text = json.dumps(_internal(_with_host_settings(spec), "PodSpec"), indent=1)
    return [line + "\n" for line in text.split("\n")]


def _with_host_settings(spec: Json) -> Json:
    host = {name: spec[name] for name in _HOST_SETTINGS if name in spec}
    return {**spec, "securityContext": {**(spec.get("securityContext") or {}), **host}}


def _internal(value: Any, kind: str) -> Any:
    match value:
        case list():
            return [_internal(item, kind) for item in value]
        case dict() if kind in _ORDER:
            return dict(_member(value, row) for row in _ORDER[kind])
        case dict():
            return {_go_name(name): _internal(item, "") for name, item in value.items()}
        case _:
            return value


def _member(value: Json, row: str) -> tuple[str, Any]:
    if ":" in row:
        name, _, kind = row.partition(":")
        return _go_name(name), _internal(value.get(name), kind)
    name, equals, text = row.partition("=")
    zero: Any = None
    if equals:
        zero = {"false": False, "0": 0}.get(text, text)
    member = value.get(name, zero)
    return _go_name(name), dict(sorted(member.items())) if isinstance(member, dict) else member


def _go_name(name: str) -> str:
    return _GO_NAMES.get(name) or name[:1].upper() + name[1:]
