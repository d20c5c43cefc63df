"""Pods as the scheduler, the claim controller and the node agent read them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from msgspec import field

from dray.api.affinity import Affinity, NodeFilter
from dray.api.meta import ApiStruct, Json
from dray.api.quantities import Quantity
from dray.api.taints import Toleration
from dray.api.views import ResourceList, ViewCondition, ViewMeta, view_as

DEFAULT_SCHEDULER = "default-scheduler"


class ContainerClaim(ApiStruct, frozen=True):
    """A claim of the pod that a container uses: all of it, or one request's devices."""

    name: str = ""
    request: str = ""


class ResourceRequirements(ApiStruct, frozen=True):
    requests: ResourceList = {}
    limits: ResourceList = {}
    claims: tuple[ContainerClaim, ...] = ()


class ContainerPort(ApiStruct, frozen=True):
    name: str = ""
    container_port: int = 0
    host_port: int = 0
    host_ip: str = field(default="", name="hostIP")
    protocol: str = "TCP"


class Container(ApiStruct, frozen=True):
    name: str = ""
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str = ""

    @property
    def effective_requests(self) -> ResourceList:
        """The requests; a limit without a request is one."""
        return {**self.resources.limits, **self.resources.requests}


class PodResourceClaim(ApiStruct, frozen=True):
    """A claim by name, or a template from which one is made for the pod."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGate(ApiStruct, frozen=True):
    name: str = ""


class PodSchedulingGroup(ApiStruct, frozen=True):
    pod_group_name: str = ""


class PodSpec(ApiStruct, frozen=True):
    node_name: str = ""
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    scheduler_name: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str = ""
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    scheduling_group: PodSchedulingGroup | None = None
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resources: ResourceRequirements | None = None
    resource_claims: tuple[PodResourceClaim, ...] = ()
    overhead: ResourceList = {}
    restart_policy: str = ""
    termination_grace_period_seconds: int | None = None
    service_account_name: str = ""
    host_network: bool = False


class PodResourceClaimStatus(ApiStruct, frozen=True):
    """The claim made for an entry of spec.resourceClaims; no name means that none was needed."""

    name: str = ""
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(ApiStruct, frozen=True):
    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class PodExtendedResourceClaimStatus(ApiStruct, frozen=True):
    """The claim that the scheduler made for the pod's extended resources."""

    resource_claim_name: str = ""
    request_mappings: tuple[ContainerExtendedResourceRequest, ...] = ()


class PodStatus(ApiStruct, frozen=True):
    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: tuple[ViewCondition, ...] = ()
    nominated_node_name: str = ""
    start_time: str | None = None
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None


class Pod(ApiStruct, frozen=True):
    metadata: ViewMeta = ViewMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def node_filter(self) -> NodeFilter:
        """What the pod requires and prefers of nodes. Compiled anew on every call: keep it."""
        return NodeFilter(self.spec.node_selector, self.spec.affinity)


def view_pod(obj: Json) -> Pod:
    """Raises InvalidView."""
    return view_as(obj, Pod)


def is_terminal(pod: Pod) -> bool:
    """Whether all containers have stopped for good."""
    return pod.status.phase in ("Succeeded", "Failed")


def iter_containers(pod: Pod) -> Iterator[Container]:
    """Init containers first, as they run."""
    yield from pod.spec.init_containers
    yield from pod.spec.containers


# Claims


class ClaimNotCreated(LookupError):
    """The claim of a template isn't recorded in the pod's status yet."""


class UnknownClaimSource(ValueError):
    """An entry of spec.resourceClaims names neither a claim nor a template."""


class ClaimName(NamedTuple):
    name: str | None
    """None if the entry needs no claim."""
    must_check_owner: bool
    """Whether the claim counts only if the pod owns it: it was made for the pod."""


def claim_name(pod: Pod, entry: PodResourceClaim) -> ClaimName:
    """Which ResourceClaim an entry of spec.resourceClaims stands for. Raises ClaimNotCreated, UnknownClaimSource."""
    if entry.resource_claim_name is not None:
        return ClaimName(entry.resource_claim_name, False)
    where = f'pod "{pod.metadata.namespace}/{pod.metadata.name}"'
    if entry.resource_claim_template_name is None:
        raise UnknownClaimSource(f'{where}, spec.resourceClaim "{entry.name}": none of the supported fields are set')
    for status in pod.status.resource_claim_statuses:
        if status.name == entry.name:
            return ClaimName(status.resource_claim_name, True)
    raise ClaimNotCreated(f"{where}: ResourceClaim not created yet")


# Resources


def pod_requests(pod: Pod) -> ResourceList:
    """What the pod takes of its node: the most that its containers need at one time, plus the overhead.

    Init containers run one after the other before the others start, except those with restartPolicy Always (sidecars),
    which keep running beside everything that starts after them.
    """
    running: ResourceList = {}
    sidecars: ResourceList = {}
    starting: ResourceList = {}
    for container in pod.spec.containers:
        _add(running, container.effective_requests)
    for container in pod.spec.init_containers:
        needs = container.effective_requests
        if container.restart_policy == "Always":
            _add(running, needs)
            _add(sidecars, needs)
            needs = dict(sidecars)
        else:
            needs = dict(needs)
            _add(needs, sidecars)
        _raise_to(starting, needs)
    _raise_to(running, starting)
    if pod.spec.resources is not None:
        for name, amount in {**pod.spec.resources.limits, **pod.spec.resources.requests}.items():
            if name in ("cpu", "memory") or name.startswith("hugepages-"):
                running[name] = amount
    _add(running, pod.spec.overhead)
    return running


def _add(total: ResourceList, amounts: ResourceList) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, Quantity.ZERO) + amount


def _raise_to(least: ResourceList, amounts: ResourceList) -> None:
    for name, amount in amounts.items():
        if amount > least.get(name, Quantity.ZERO) or name not in least:
            least[name] = amount


class HostPort(NamedTuple):
    ip: str
    protocol: str
    port: int


def host_ports(pod: Pod) -> list[HostPort]:
    """The ports of the node that the pod occupies while it runs; without an address it is all of the node's."""
    sidecars = [container for container in pod.spec.init_containers if container.restart_policy == "Always"]
    return [
        HostPort(port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)
        for container in (*pod.spec.containers, *sidecars)
        for port in container.ports
        if port.host_port > 0
    ]
