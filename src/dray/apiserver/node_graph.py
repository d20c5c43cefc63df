"""What belongs to which node: the pods bound to it, what those pods refer to, and the slices that it published."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from dray.api.meta import Json

_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")


class ObjectRef(NamedTuple):
    resource: str
    namespace: str
    name: str


class NodeGraph:
    """Edges from objects to nodes, kept as pods and slices change."""

    def __init__(self) -> None:
        self._edges: dict[ObjectRef, Counter[str]] = {}
        self._sources: dict[ObjectRef, tuple[str, frozenset[ObjectRef]]] = {}

    def relates(self, node: str, ref: ObjectRef) -> bool:
        nodes = self._edges.get(ref)
        return nodes is not None and nodes[node] > 0

    def set_pod(self, namespace: str, name: str, pod: Json | None) -> None:
        ref = ObjectRef("pods", namespace, name)
        spec: Json = {} if pod is None else pod.get("spec") or {}
        node = spec.get("nodeName") or ""
        refs = frozenset({ref, *_references(namespace, pod, spec)}) if pod is not None and node else frozenset()
        self._replace(ref, node, refs)

    def set_slice(self, name: str, node: str) -> None:
        """`node` is the one that it names; empty: none, or the slice is gone."""
        ref = ObjectRef("resourceslices", "", name)
        self._replace(ref, node, frozenset({ref}) if node else frozenset())

    def _replace(self, source: ObjectRef, node: str, refs: frozenset[ObjectRef]) -> None:
        old_node, old_refs = self._sources.pop(source, ("", frozenset()))
        if refs:
            self._sources[source] = (node, refs)
        for ref in refs:
            self._edges.setdefault(ref, Counter())[node] += 1
        for ref in old_refs:
            nodes = self._edges[ref]
            nodes[old_node] -= 1
            if not nodes[old_node]:
                del nodes[old_node]
            if not nodes:
                del self._edges[ref]


def _references(namespace: str, pod: Json, spec: Json) -> Iterator[ObjectRef]:
    yield ObjectRef("serviceaccounts", namespace, spec.get("serviceAccountName") or "default")
    for secret in spec.get("imagePullSecrets") or ():
        yield ObjectRef("secrets", namespace, secret.get("name", ""))
    for field in _CONTAINERS:
        for container in spec.get(field) or ():
            yield from _container_references(namespace, container)
    for volume in spec.get("volumes") or ():
        yield from _volume_references(namespace, volume)
    for claim in spec.get("resourceClaims") or ():
        if name := claim.get("resourceClaimName"):
            yield ObjectRef("resourceclaims", namespace, name)
    status: Json = pod.get("status") or {}
    generated: list[Any] = [*(status.get("resourceClaimStatuses") or ())]
    generated.append(status.get("extendedResourceClaimStatus") or {})
    for claim in generated:
        if name := claim.get("resourceClaimName"):
            yield ObjectRef("resourceclaims", namespace, name)


def _container_references(namespace: str, container: Json) -> Iterator[ObjectRef]:
    for source in container.get("envFrom") or ():
        for field, resource in (("configMapRef", "configmaps"), ("secretRef", "secrets")):
            if field in source:
                yield ObjectRef(resource, namespace, source[field].get("name", ""))
    for variable in container.get("env") or ():
        source = variable.get("valueFrom") or {}
        for field, resource in (("configMapKeyRef", "configmaps"), ("secretKeyRef", "secrets")):
            if field in source:
                yield ObjectRef(resource, namespace, source[field].get("name", ""))


def _volume_references(namespace: str, volume: Json) -> Iterator[ObjectRef]:
    if "secret" in volume:
        yield ObjectRef("secrets", namespace, volume["secret"].get("secretName", ""))
    if "configMap" in volume:
        yield ObjectRef("configmaps", namespace, volume["configMap"].get("name", ""))
    for source in (volume.get("projected") or {}).get("sources") or ():
        for field, resource in (("configMap", "configmaps"), ("secret", "secrets")):
            if field in source:
                yield ObjectRef(resource, namespace, source[field].get("name", ""))
