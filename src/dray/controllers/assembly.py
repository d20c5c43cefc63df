"""All controllers of one process: who reads what, who has which queue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, TypeVar

from prometheus_client import CollectorRegistry

from dray.api.meta import ObjectKey
from dray.api.nodes import view_node
from dray.api.pods import view_pod
from dray.api.resources import (
    CONFIG_MAPS,
    DEVICE_TAINT_RULES,
    NAMESPACES,
    NODES,
    OWNABLE_RESOURCES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_QUOTAS,
    RESOURCE_SLICES,
    SERVICE_ACCOUNTS,
)
from dray.api.views import view_meta
from dray.controllers.claims import ClaimController, ClaimKey
from dray.controllers.garbage import GarbageCollector
from dray.controllers.metrics import ClaimMetrics, QueueMetrics
from dray.controllers.namespaces import NamespaceController
from dray.controllers.podgc import PodGarbageCollector
from dray.controllers.quotas import QuotaController
from dray.controllers.serviceaccounts import ServiceAccountController
from dray.controllers.slices import SliceCleanup
from dray.controllers.tainteviction import DeviceTaintEviction
from dray.runtime.client import Client
from dray.runtime.clock import Clock
from dray.runtime.decoding import DECODERS, decode_claim, decode_rule, decode_slice, decode_template
from dray.runtime.events import EventRecorder
from dray.runtime.informers import Informers
from dray.runtime.queue import Reconcile, WorkQueue

K = TypeVar("K", bound=Hashable)


class Controllers:
    """`informers`, if given, are shared with other components and run by whoever made them."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        root_ca: str,
        registry: CollectorRegistry | None = None,
        informers: Informers | None = None,
    ) -> None:
        self.registry = registry or CollectorRegistry()
        self._client = client
        self._clock = clock
        self._informers = informers or Informers(client, clock)
        self._runs_informers = informers is None
        self._recorder = EventRecorder(client, clock, "resource_claim")
        self._queue_metrics = QueueMetrics(self.registry)
        self._work: list[Callable[[], Coroutine[Any, Any, None]]] = []
        self._queues: list[WorkQueue[Any]] = []
        self._build(root_ca)

    def _build(self, root_ca: str) -> None:
        client, clock, of = self._client, self._clock, self._informers.of
        pods = self._informers.typed(PODS, view_pod)
        nodes = self._informers.typed(NODES, view_node)
        claims = self._informers.typed(RESOURCE_CLAIMS, decode_claim)
        templates = self._informers.typed(RESOURCE_CLAIM_TEMPLATES, decode_template)
        slices = self._informers.typed(RESOURCE_SLICES, decode_slice)
        rules = self._informers.typed(DEVICE_TAINT_RULES, decode_rule)

        claim_queue: WorkQueue[ClaimKey] = self._queue("resource_claim")
        claim_controller = ClaimController(
            client, pods, claims, templates, self._recorder, ClaimMetrics(self.registry), claim_queue
        )
        self._serve(claim_queue, claim_controller.reconcile, workers=50)

        garbage_queue: WorkQueue[str] = self._queue("garbage")
        followed = [self._informers.typed(each, DECODERS.get(each, view_meta)) for each in OWNABLE_RESOURCES]
        garbage = GarbageCollector(client, followed, garbage_queue)
        self._serve(garbage_queue, garbage.reconcile, workers=20)

        namespace_queue: WorkQueue[ObjectKey] = self._queue("namespaces")
        namespaces = NamespaceController(client, of(NAMESPACES), namespace_queue)
        self._serve(namespace_queue, namespaces.reconcile, workers=5)

        account_queue: WorkQueue[ObjectKey] = self._queue("serviceaccounts")
        accounts = ServiceAccountController(
            client, of(NAMESPACES), of(SERVICE_ACCOUNTS), of(CONFIG_MAPS), account_queue, root_ca=root_ca
        )
        self._serve(account_queue, accounts.reconcile)

        slice_queue: WorkQueue[ObjectKey] = self._queue("slices")
        cleanup = SliceCleanup(client, nodes, slices, slice_queue)
        self._serve(slice_queue, cleanup.reconcile)

        pod_queue: WorkQueue[ObjectKey] = self._queue("podgc")
        pod_gc = PodGarbageCollector(client, clock, pods, nodes, pod_queue)
        self._serve(pod_queue, pod_gc.reconcile, workers=5)

        quota_queue: WorkQueue[ObjectKey] = self._queue("quotas")
        quotas = QuotaController(client, clock, of(RESOURCE_QUOTAS), quota_queue)
        self._serve(quota_queue, quotas.reconcile)

        taint_queue: WorkQueue[ObjectKey] = self._queue("device_taints")
        eviction = DeviceTaintEviction(client, clock, claims, slices, rules, pods, self._recorder, taint_queue)
        self._serve(taint_queue, eviction.reconcile, workers=5)

    def _queue(self, name: str) -> WorkQueue[Any]:
        queue: WorkQueue[Any] = WorkQueue(name, self._clock)
        self._queue_metrics.watch(queue)
        self._queues.append(queue)
        return queue

    def _serve(self, queue: WorkQueue[K], reconcile: Reconcile[K], workers: int = 1) -> None:
        self._work.append(lambda: queue.work(reconcile, workers))

    @property
    def is_ready(self) -> bool:
        return self._informers.have_synced

    @property
    def is_idle(self) -> bool:
        """Nothing to do that is known of; for tests that wait until things have settled."""
        return self.is_ready and all(queue.is_idle for queue in self._queues)

    async def run(self) -> None:
        """Reconcile until cancelled. Nothing is decided before the whole cluster was read once."""
        async with asyncio.TaskGroup() as group:
            if self._runs_informers:
                group.create_task(self._informers.run())
            group.create_task(self._recorder.run())
            await self._informers.wait_synced()
            for work in self._work:
                group.create_task(work())
