"""For the checker: one claim and its allocation, looked at by themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dray.allocator.nodes import OPTIONAL_NODE_OPERATIONS, NodeFacts
from dray.allocator.verify_capacity import find_consumption
from dray.allocator.verify_constraints import Chosen, iter_problems
from dray.allocator.verify_outcome import expected_config, expected_node_selector
from dray.allocator.verify_pools import Catalog, Published, reaches
from dray.allocator.verify_rules import Rule, Violation
from dray.api.claims import (
    ALLOCATION_MODE_ALL,
    MAX_ALLOCATION_RESULTS,
    AllocationResult,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
)
from dray.api.classes import DeviceClass
from dray.api.devices import DeviceID, PoolID
from dray.api.features import FeatureGates
from dray.api.meta import ObjectKey
from dray.api.taints import find_untolerated
from dray.cel.devices import bind_device
from dray.cel.errors import CelError
from dray.cel.program import compile_selector


class Ask(NamedTuple):
    """A request, or the one of its subrequests that won."""

    name: str
    spec: ExactDeviceRequest | DeviceSubRequest

    @property
    def is_admin(self) -> bool:
        return isinstance(self.spec, ExactDeviceRequest) and bool(self.spec.admin_access)


class Use(NamedTuple):
    """One device in a claim's allocation. `published` is None if there is no such device."""

    claim: ObjectKey
    result: DeviceRequestAllocationResult
    published: Published | None
    is_admin: bool


@dataclass(frozen=True)
class World:
    """What allocations are held against."""

    catalog: Catalog
    classes: Mapping[str, DeviceClass]
    gates: FeatureGates

    @property
    def shares(self) -> bool:
        return "DRAConsumableCapacity" in self.gates

    @property
    def binds(self) -> bool:
        return "DRADeviceBindingConditions" in self.gates and "DRAResourceClaimDeviceStatus" in self.gates


class ClaimCheck:
    """All rules that concern one claim alone. `node` is None if nobody knows where it was allocated."""

    def __init__(
        self, world: World, node: NodeFacts | None, claim: ResourceClaim, allocation: AllocationResult
    ) -> None:
        self._world = world
        self._node = node
        self._claim = claim
        self._allocation = allocation
        self._key = claim.metadata.key

    def uses(self) -> list[Use]:
        admins = {ask.name for ask in self._iter_asks() if ask.is_admin}
        return [
            Use(self._key, result, self._find(result.device_id), result.request in admins)
            for result in self._allocation.devices.results
        ]

    def violations(self) -> Iterator[Violation]:
        results = self._allocation.devices.results
        if len(results) > MAX_ALLOCATION_RESULTS:
            yield self._violation(Rule.LIMIT, f"{len(results)} devices, at most {MAX_ALLOCATION_RESULTS} are allowed")
        yield from self._check_names(results)
        won: list[tuple[Ask, list[DeviceRequestAllocationResult]]] = []
        for request in self._claim.spec.devices.requests:
            mine = [result for result in results if result.request.partition("/")[0] == request.name]
            ask = self._find_winner(request, mine)
            if ask is None:
                yield self._violation(Rule.REQUESTS, "no devices, or devices of several subrequests", request.name)
                continue
            won.append((ask, mine))
            yield from self._check_request(ask, mine)
        yield from self._check_constraints(won)
        yield from self._check_outcome([ask for ask, _ in won])

    # The claim as a whole

    def _check_names(self, results: Sequence[DeviceRequestAllocationResult]) -> Iterator[Violation]:
        order = [request.name for request in self._claim.spec.devices.requests]
        position = 0
        for result in results:
            name = result.request.partition("/")[0]
            if name not in order:
                yield self._violation(Rule.REQUESTS, "there is no such request", result.request, result.device_id)
            elif order.index(name) < position:
                yield self._violation(Rule.REQUESTS, "out of order", result.request, result.device_id)
            else:
                position = order.index(name)

    def _iter_asks(self) -> Iterator[Ask]:
        for request in self._claim.spec.devices.requests:
            if request.exactly is not None:
                yield Ask(request.name, request.exactly)
            for sub in request.first_available:
                yield Ask(f"{request.name}/{sub.name}", sub)

    def _find_winner(self, request: DeviceRequest, results: list[DeviceRequestAllocationResult]) -> Ask | None:
        names = {result.request for result in results}
        return next((ask for ask in self._iter_asks() if names == {ask.name}), None)

    def _check_constraints(self, won: list[tuple[Ask, list[DeviceRequestAllocationResult]]]) -> Iterator[Violation]:
        constraints = self._claim.spec.devices.constraints
        if any(each.cel for each in constraints) and "DRACELDeviceConstraint" not in self._world.gates:
            yield self._violation(Rule.FEATURES, "CEL constraints are turned off")
        chosen: list[Chosen] = []
        for ask, results in won:
            for result in results:
                published = self._find(result.device_id)
                if published is None:
                    return  # already a violation, and without it there is nothing to compare
                chosen.append(Chosen(ask.name, published, ask.spec.derived_attributes))
        for position, problem in iter_problems(constraints, chosen, self._world.gates):
            yield self._violation(Rule.CONSTRAINT, f"constraint #{position}: {problem}")

    def _check_outcome(self, asks: list[Ask]) -> Iterator[Violation]:
        classes = self._world.classes
        chosen = [(ask.name, classes[name]) for ask in asks if (name := ask.spec.device_class_name) in classes]
        if expected_config(self._claim.spec.devices, chosen) != self._allocation.devices.config:
            yield self._violation(Rule.CONFIG, "not what the classes and the claim ask for")
        devices = [self._find(result.device_id) for result in self._allocation.devices.results]
        known = [each for each in devices if each is not None]
        if self._node is None or len(known) < len(devices):
            return
        expected = expected_node_selector(self._node.name, known)
        if expected != self._allocation.node_selector:
            yield self._violation(Rule.NODE_SELECTOR, f"expected {expected}, found {self._allocation.node_selector}")

    # One request

    def _check_request(self, ask: Ask, results: list[DeviceRequestAllocationResult]) -> Iterator[Violation]:
        yield from self._check_features(ask)
        device_class = self._world.classes.get(ask.spec.device_class_name)
        if device_class is None:
            yield self._violation(Rule.CLASS, f"{ask.spec.device_class_name} doesn't exist", ask.name)
        names = [result.device_id for result in results]
        for name in {name for name in names if names.count(name) > 1}:
            yield self._violation(Rule.IN_USE, "more than once in the same request", ask.name, name)
        if ask.spec.allocation_mode == ALLOCATION_MODE_ALL:
            yield from self._check_all(ask, device_class, set(names))
        elif len(results) != ask.spec.count:
            yield self._violation(Rule.COUNT, f"{len(results)} devices, requested are {ask.spec.count}", ask.name)
        for result in results:
            for rule, detail in self._iter_device_problems(ask, device_class, result):
                yield self._violation(rule, detail, ask.name, result.device_id)

    def _check_features(self, ask: Ask) -> Iterator[Violation]:
        needed = {
            "DRAPrioritizedList": "/" in ask.name,
            "DRAConsumableCapacity": ask.spec.capacity is not None,
            "DRADerivedAttributes": bool(ask.spec.derived_attributes),
            "DRAAdminAccess": isinstance(ask.spec, ExactDeviceRequest) and ask.spec.admin_access is not None,
        }
        for gate, used in needed.items():
            if used and gate not in self._world.gates:
                yield self._violation(Rule.FEATURES, f"needs {gate}, which is turned off", ask.name)

    def _check_all(self, ask: Ask, device_class: DeviceClass | None, chosen: set[DeviceID]) -> Iterator[Violation]:
        if self._node is None or device_class is None:
            return
        for id, view in self._world.catalog.views(self._node):
            if view.status in ("incomplete", "invalid"):
                yield self._violation(Rule.ALL, f"pool {id} is {view.status}: {view.problem}", ask.name)
            for published in view.devices.values():
                if published.id not in chosen and self._could_have(ask, device_class, published):
                    yield self._violation(Rule.ALL, "is left out", ask.name, published.id)

    def _could_have(self, ask: Ask, device_class: DeviceClass, published: Published) -> bool:
        """Whether `All` includes the device, in use or not."""
        if published.device.binding_conditions and not self._world.binds:
            return False
        if self._node is None or not reaches(published.selection, self._node):
            return False
        if any(self._iter_selector_problems(ask, device_class, published)):
            return False
        return not (self._world.shares and isinstance(self._consumption(ask, published), str))

    # One device

    def _iter_device_problems(
        self, ask: Ask, device_class: DeviceClass | None, result: DeviceRequestAllocationResult
    ) -> Iterator[tuple[Rule, str]]:
        if bool(result.admin_access) != ask.is_admin:
            yield Rule.ADMIN_ACCESS, f"is {bool(result.admin_access)}, requested is {ask.is_admin}"
        if result.tolerations != ask.spec.tolerations:
            yield Rule.TOLERATIONS, "not those of the request"
        published = self._find(result.device_id)
        if published is None:
            if self._node is not None:
                view = self._world.catalog.view(self._node, PoolID(result.driver, result.pool))
                yield Rule.DEVICE, view.problem or "the pool has no such device"
            return
        if self._node is not None and not reaches(published.selection, self._node):
            yield Rule.REACH, f"can't be reached from node {self._node.name}"
        if device_class is not None:
            for problem in self._iter_selector_problems(ask, device_class, published):
                yield Rule.SELECTOR, problem
        taint = find_untolerated(published.device.taints, ask.spec.tolerations)
        if taint is not None and "DRADeviceTaints" in self._world.gates:
            yield Rule.TAINT, f"{taint.key}={taint.value}:{taint.effect} isn't tolerated"
        if published.device.consumes_counters and "DRAPartitionableDevices" not in self._world.gates:
            yield Rule.FEATURES, "consumes counters, but DRAPartitionableDevices is turned off"
        yield from self._iter_share_problems(ask, published, result)
        yield from self._iter_binding_problems(published, result)

    def _iter_selector_problems(self, ask: Ask, device_class: DeviceClass, published: Published) -> Iterator[str]:
        owners: tuple[tuple[str, tuple[DeviceSelector, ...]], ...] = (
            (f"of class {device_class.metadata.name} ", device_class.spec.selectors),
            ("", ask.spec.selectors),
        )
        value = bind_device(published.id.driver, published.device)
        for owner, selectors in owners:
            for position, selector in enumerate(selectors):
                text = selector.cel.expression if selector.cel else ""
                try:
                    if not compile_selector(text, gates=self._world.gates).matches(value):
                        yield f"{owner}#{position} is false: {text}"
                except CelError as error:
                    yield f"{owner}#{position}: {error}"

    def _iter_share_problems(
        self, ask: Ask, published: Published, result: DeviceRequestAllocationResult
    ) -> Iterator[tuple[Rule, str]]:
        consumed = self._consumption(ask, published) if self._world.shares else {}
        if isinstance(consumed, str):
            yield Rule.CAPACITY, consumed
            return
        shared = self._world.shares and bool(published.device.allow_multiple_allocations)
        if shared != (result.share_id is not None):
            yield Rule.SHARES, "a share needs an ID" if shared else "the device can't be shared, so it has no share ID"
        found = {name: quantity.nano for name, quantity in result.consumed_capacity.items()}
        if found != (consumed if shared else {}):
            yield Rule.CAPACITY, "the consumed capacity isn't what was requested, rounded by the device's policy"

    def _consumption(self, ask: Ask, published: Published) -> dict[str, int] | str:
        requested = ask.spec.capacity.requests if ask.spec.capacity else {}
        fractional = "DRAFractionalCapacityRange" in self._world.gates
        return find_consumption(requested, published.device, fractional=fractional)

    def _iter_binding_problems(
        self, published: Published, result: DeviceRequestAllocationResult
    ) -> Iterator[tuple[Rule, str]]:
        device, skips = published.device, published.slice.spec.skip_node_operations
        if device.binding_conditions and not self._world.binds:
            yield Rule.BINDING, "has binding conditions, which are turned off"
        expected = (device.binding_conditions, device.binding_failure_conditions) if self._world.binds else ((), ())
        if (result.binding_conditions, result.binding_failure_conditions) != expected:
            yield Rule.BINDING, "not those of the device"
        if result.skip_node_operations != skips:
            yield Rule.NODE_OPERATIONS, "not those of the slice"
        declared = self._node is None or OPTIONAL_NODE_OPERATIONS in self._node.declared_features
        if skips and not (declared and OPTIONAL_NODE_OPERATIONS in self._world.gates):
            yield Rule.NODE_OPERATIONS, "the node can't skip operations"

    def _find(self, id: DeviceID) -> Published | None:
        if self._node is None:
            return None
        return self._world.catalog.view(self._node, PoolID(id.driver, id.pool)).devices.get(id.device)

    def _violation(self, rule: Rule, detail: str, request: str = "", device: DeviceID | None = None) -> Violation:
        return Violation(rule, self._key, detail, request, device)
