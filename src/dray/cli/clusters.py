"""A cluster for commands that decide: slices, classes, nodes and claims, as manifests describe them.

Every command takes a `Cluster`, wherever it comes from; `read_cluster` makes one of files.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import typer
from msgspec.structs import replace

from dray.allocator.index import Index
from dray.allocator.nodes import NodeFacts
from dray.api.claims import ResourceClaim, ResourceClaimTemplate
from dray.api.classes import DeviceClass
from dray.api.codec import DecodeError
from dray.api.features import ALL_GATES, FeatureGates
from dray.api.meta import RESOURCE_GROUP, ObjectKey, ObjectMeta, Time
from dray.api.node_matching import NodeMatcher
from dray.api.nodeselectors import NodeSelector
from dray.api.pods import Pod, view_pod
from dray.api.slices import ResourceSlice
from dray.api.taintrules import DeviceTaintRule
from dray.api.times import format_time
from dray.api.views import InvalidView
from dray.cli.device_checks import check_device_kind, decode_device_kind
from dray.cli.exits import UNUSABLE
from dray.cli.findings import Finding, find_broken_document, find_undecodable
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
    objects: list[Any] = []
    problems: list[str] = []
    now = format_time(datetime.now(UTC))
    for source in read_sources(files):
        if isinstance(source, UnusableInput):
            problems.append(str(source))
            continue
        for obj in iter_objects(source):
            if isinstance(obj, BrokenDocument):
                problems.append(str(find_broken_document(obj)))
                continue
            try:
                value, broken = _read(obj, now)
            except (DecodeError, InvalidView) as error:
                problems.append(str(find_undecodable(obj, error)))
            else:
                objects.append(value)
                problems += map(str, broken)
    if problems:
        for problem in problems:
            typer.echo(problem, err=True)
        raise typer.Exit(UNUSABLE)
    return make_cluster(objects, gates)


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


def _read(obj: ManifestObject, now: Time) -> tuple[Any, list[Finding]]:
    """The object, or None if its kind doesn't matter here, and the rules that it breaks.

    A cluster never stores an object that breaks one, so nobody has to think of what such an object would mean.
    """
    if obj.api_version.partition("/")[0] == RESOURCE_GROUP or not obj.kind:
        value, warnings = decode_device_kind(obj, now)
        for warning in warnings:
            typer.echo(f"{warning} (ignored)", err=True)
        # With all gates: what a gate leaves of an object is for the allocator to say.
        return value, list(check_device_kind(obj, value, ALL_GATES, now))
    match obj.api_version, obj.kind:
        case "v1", "Node":
            return NodeFacts.of_json(obj.value), []
        case "v1", "Pod":
            return view_pod(obj.value), []
    return None, []


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
