"""A cluster for commands that decide: slices, classes, nodes and claims, as manifests describe them.

Every command takes a `Cluster`, wherever it comes from; `read_cluster` makes one of files.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import typer
from msgspec.structs import replace

from dray.allocator.index import Index
from dray.allocator.nodes import NodeFacts
from dray.api.claims import ResourceClaim, ResourceClaimTemplate
from dray.api.classes import DeviceClass
from dray.api.codec import DecodeError, decode_object
from dray.api.features import ALL_GATES, FeatureGates
from dray.api.meta import RESOURCE_GROUP, ObjectKey, ObjectMeta
from dray.api.node_matching import NodeMatcher
from dray.api.nodeselectors import NodeSelector
from dray.api.pods import Pod, view_pod
from dray.api.slices import ResourceSlice
from dray.api.taintrules import DeviceTaintRule
from dray.api.views import InvalidView
from dray.cli.exits import UNUSABLE
from dray.cli.sources import BrokenDocument, ManifestObject, UnusableInput, iter_objects, read_sources
from dray.placement.taintrules import apply_rules

DEFAULT_NAMESPACE = "default"


@dataclass(frozen=True)
class ClaimSet:
    """Claims that must be allocated on one node: those of a pod, or one that no pod uses."""

    owner: str
    claims: tuple[ResourceClaim, ...]
    """Those that aren't allocated yet."""
    selectors: tuple[NodeSelector, ...] = ()
    """Where the pod can go because of its claims that are allocated."""
    pod: ObjectKey | None = None

    def admits(self, node: NodeFacts) -> bool:
        return all(NodeMatcher(selector).matches(node.labels, node.name) for selector in self.selectors)


@dataclass
class Cluster:
    gates: FeatureGates = ALL_GATES
    slices: list[ResourceSlice] = field(default_factory=list)
    """With the taints of all DeviceTaintRules."""
    classes: list[DeviceClass] = field(default_factory=list)
    nodes: list[NodeFacts] = field(default_factory=list)
    claims: dict[ObjectKey, ResourceClaim] = field(default_factory=dict)
    pods: list[Pod] = field(default_factory=list)

    def make_index(self) -> Index:
        index = Index(self.gates, make_id=lambda: str(uuid.uuid4()))
        for slice_ in self.slices:
            index.apply_slice(slice_)
        for device_class in self.classes:
            index.apply_class(device_class)
        for node in self.nodes:
            index.apply_node(node)
        for claim in self.claims.values():
            index.apply_claim(claim)
        return index

    def claim_sets(self) -> Iterator[ClaimSet]:
        """What there is to allocate, in the order of the manifests: claims of pods first."""
        taken: set[ObjectKey] = set()
        for pod in self.pods:
            keys = [key for key in _claim_keys(pod) if key in self.claims]
            mine = [self.claims[key] for key in keys]
            pending = tuple(claim for claim in mine if not claim.status.allocation and claim.metadata.key not in taken)
            taken.update(keys)
            if pending:
                selectors = (claim.status.allocation.node_selector for claim in mine if claim.status.allocation)
                key = ObjectKey(_namespace(pod.metadata.namespace), pod.metadata.name)
                wheres = tuple(selector for selector in selectors if selector is not None)
                yield ClaimSet(f"pod {key}", pending, wheres, key)
        for key, claim in self.claims.items():
            if key not in taken and claim.status.allocation is None:
                yield ClaimSet(f"claim {key}", (claim,))


def read_cluster(files: Sequence[str], gates: FeatureGates) -> Cluster:
    """The cluster in these files. What can't be read is told on standard error, and ends the command."""
    objects: list[tuple[ManifestObject, Any]] = []
    problems: list[str] = []
    for source in read_sources(files):
        if isinstance(source, UnusableInput):
            problems.append(str(source))
            continue
        for obj in iter_objects(source):
            try:
                objects += _decode(obj)
            except (DecodeError, InvalidView) as error:
                problems.append(_describe(obj, error))
    if problems:
        for problem in problems:
            typer.echo(problem, err=True)
        raise typer.Exit(UNUSABLE)
    return make_cluster((value for _, value in objects), gates)


def make_cluster(objects: Iterable[Any], gates: FeatureGates = ALL_GATES) -> Cluster:
    """A cluster of typed objects, of which later ones replace earlier ones of the same name.

    Nodes are `NodeFacts`; without any, the slices say which there are.
    """
    cluster = Cluster(gates)
    slices: dict[str, ResourceSlice] = {}
    classes: dict[str, DeviceClass] = {}
    templates: dict[ObjectKey, ResourceClaimTemplate] = {}
    rules: dict[str, DeviceTaintRule] = {}
    for value in objects:
        match value:
            case ResourceSlice():
                slices[value.metadata.name] = value
            case DeviceClass():
                classes[value.metadata.name] = value
            case NodeFacts():
                cluster.nodes.append(value)
            case Pod():
                cluster.pods.append(value)
            case DeviceTaintRule():
                rules[value.metadata.name] = value
            case ResourceClaim():
                claim = replace(value, metadata=_in_namespace(value.metadata))
                cluster.claims[claim.metadata.key] = claim
            case ResourceClaimTemplate():
                templates[_in_namespace(value.metadata).key] = value
    cluster.classes = list(classes.values())
    active = rules if "DRADeviceTaintRules" in gates else {}
    cluster.slices = [apply_rules(slice_, active) for slice_ in slices.values()]
    cluster.nodes = cluster.nodes or list(_nodes_of(cluster.slices))
    _fill_templates(cluster, templates)
    return cluster


def _decode(obj: ManifestObject | BrokenDocument) -> list[tuple[ManifestObject, Any]]:
    """Nothing for kinds that don't matter here."""
    if isinstance(obj, BrokenDocument):
        raise DecodeError(obj.reason)
    if obj.api_version.partition("/")[0] == RESOURCE_GROUP or not obj.kind:
        return [(obj, decode_object(obj.json_text))]
    match obj.api_version, obj.kind:
        case "v1", "Node":
            return [(obj, NodeFacts.of_json(obj.value))]
        case "v1", "Pod":
            return [(obj, view_pod(obj.value))]
    return []


def _describe(obj: ManifestObject | BrokenDocument, error: Exception) -> str:
    if isinstance(obj, BrokenDocument):
        return f"{obj.source}:{obj.line}: {obj.reason}"
    if isinstance(error, DecodeError):
        where = f"{obj.source}:{obj.line_of(error.path)}: {obj}"
        return f"{where}: {error.field}: {error.message}" if error.path else f"{where}: {error.message}"
    return f"{obj.source}:{obj.line_of()}: {obj}: {error}"


def _namespace(name: str) -> str:
    return name or DEFAULT_NAMESPACE


def _in_namespace(metadata: ObjectMeta) -> ObjectMeta:
    return metadata if metadata.namespace else replace(metadata, namespace=DEFAULT_NAMESPACE)


def _nodes_of(slices: Iterable[ResourceSlice]) -> Iterator[NodeFacts]:
    names: dict[str, None] = {}
    for slice_ in slices:
        for name in (slice_.spec.node_name, *(device.node_name for device in slice_.spec.devices)):
            if name:
                names.setdefault(name)
    yield from map(NodeFacts, names or ("node",))


def _claim_keys(pod: Pod) -> Iterator[ObjectKey]:
    made = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
    for entry in pod.spec.resource_claims:
        name = entry.resource_claim_name or made.get(entry.name) or f"{pod.metadata.name}-{entry.name}"
        yield ObjectKey(_namespace(pod.metadata.namespace), name)


def _fill_templates(cluster: Cluster, templates: Mapping[ObjectKey, ResourceClaimTemplate]) -> None:
    """Make the claims that pods get from templates; a template that no pod uses stands for one claim of its name."""
    used: set[ObjectKey] = set()
    for pod in cluster.pods:
        for entry, key in zip(pod.spec.resource_claims, _claim_keys(pod), strict=True):
            template_key = ObjectKey(key.namespace, entry.resource_claim_template_name or "")
            if template_key in templates:
                used.add(template_key)
                cluster.claims.setdefault(key, _make_claim(templates[template_key], key))
    for key, template in templates.items():
        if key not in used:
            cluster.claims.setdefault(key, _make_claim(template, key))


def _make_claim(template: ResourceClaimTemplate, key: ObjectKey) -> ResourceClaim:
    metadata = replace(template.spec.metadata, namespace=key.namespace, name=key.name)
    return ResourceClaim(
        api_version=f"{RESOURCE_GROUP}/v1", kind="ResourceClaim", metadata=metadata, spec=template.spec.spec
    )
