"""What placing reads of a pod, taken out of it once."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from dray.api.affinity import NodeFilter
from dray.api.meta import ObjectKey
from dray.api.pods import HostPort, Pod, host_ports, pod_requests
from dray.api.quantities import Quantity
from dray.api.taints import Toleration

Amounts = dict[str, int]
"""Exact amounts as plain ints: CPU in thousandths, everything else in units, rounded up."""


def scale_amount(name: str, quantity: Quantity) -> int:
    return quantity.milli_value if name == "cpu" else quantity.value


class PodFacts(NamedTuple):
    key: ObjectKey
    uid: str
    priority: int
    node_name: str
    requests: Amounts
    ports: tuple[HostPort, ...]
    tolerations: tuple[Toleration, ...]
    node_filter: NodeFilter
    static_key: bytes
    """Equal for pods that ask the same of a node's labels and taints, such as those of one template."""


def read_pod(pod: Pod) -> PodFacts:
    spec = pod.spec
    return PodFacts(
        key=pod.metadata.key,
        uid=pod.metadata.uid,
        priority=spec.priority or 0,
        node_name=spec.node_name,
        requests={name: scale_amount(name, amount) for name, amount in pod_requests(pod).items()},
        ports=tuple(host_ports(pod)),
        tolerations=spec.tolerations,
        node_filter=pod.node_filter,
        static_key=msgspec.json.encode((spec.node_selector, spec.affinity, spec.tolerations)),
    )
