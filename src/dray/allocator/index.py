"""The allocator for schedulers and simulations: told of every change, asked what fits where.

Answers are remembered by what they depend on: the shape of a node, what is in use there, and the program of the claims.
So a node that looks like one already tried costs a lookup, whatever it is called, and a question to the whole cluster
costs as much as there are groups of different nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from dray.allocator.compiler import Compiler
from dray.allocator.errors import AllocationError, DeadlineExceeded, InvalidPools
from dray.allocator.frames import Stopped
from dray.allocator.groups import Grouping, GroupKey, NodeGroup
from dray.allocator.inventory import Inventory, Reach, Touched
from dray.allocator.layers import Layered
from dray.allocator.nodes import OPTIONAL_NODE_OPERATIONS, NodeFacts
from dray.allocator.pools import Pool
from dray.allocator.program import Program
from dray.allocator.results import MakeID, Recipe, make_recipe, make_results
from dray.allocator.search import Limits, find_solution
from dray.allocator.shapes import Occupancy, View, find_occupancy
from dray.allocator.situation import Situation
from dray.allocator.state import AllocatedState, Usage
from dray.allocator.statistics import Statistics
from dray.allocator.stops import make_error
from dray.allocator.tables import NodeShape, PoolPart, Stop, Table
from dray.api.claims import AllocationResult, ResourceClaim
from dray.api.classes import DeviceClass
from dray.api.devices import PoolID
from dray.api.features import ALL_GATES, FeatureGates
from dray.api.meta import ObjectKey
from dray.api.slices import ResourceSlice

Allocation = tuple[AllocationResult, ...]
"""One result per claim, in the order of the claims."""

Answer = Recipe | Stop | None

NO_LIMITS: Final = Limits()
NOTHING_ALLOCATED: Final = AllocatedState()

MOST_GROUPINGS: Final = 64
"""So many ways to group nodes are kept up to date; beyond that the oldest is dropped."""

COUNT_AT_MOST: Final = 1_000_000

MOST_ANSWERS: Final = 1 << 16
"""So many are remembered per table; beyond that, all are forgotten."""


@dataclass(frozen=True, slots=True)
class FitGroup:
    """Nodes that look the same to the claims, and what came out for all of them."""

    nodes: NodeGroup
    fits: bool
    error: AllocationError | None
    """Why allocation stopped on the first of these nodes."""


@dataclass(frozen=True, slots=True)
class Fits:
    groups: tuple[FitGroup, ...]

    def nodes(self) -> Iterator[str]:
        """The nodes on which the claims fit."""
        return (name for group in self.groups if group.fits for name in group.nodes)

    @property
    def count(self) -> int:
        return sum(len(group.nodes) for group in self.groups if group.fits)


class Index:
    def __init__(self, gates: FeatureGates = ALL_GATES, *, make_id: MakeID) -> None:
        """`make_id` gives the UUID of a share of a device with every call."""
        self.gates: Final = gates
        self.statistics = Statistics()
        self.inventory = Inventory(gates)
        self.usage = Usage()
        self._make_id: Final = make_id
        self._classes: Layered[str, DeviceClass] = Layered()
        self._compiler = Compiler(gates, self.statistics)
        self._groupings: dict[View, Grouping] = {}

    def fork(self) -> Index:
        """An index that starts out equal; from then on neither sees what the other is told. Takes no time."""
        other = Index(self.gates, make_id=self._make_id)
        other.statistics = self.statistics
        other.inventory = self.inventory.fork()
        other.usage = self.usage.fork()
        other._classes = self._classes.fork()
        other._compiler = self._compiler
        other._groupings = {view: grouping.fork() for view, grouping in self._groupings.items()}
        return other

    # Changes

    def apply_slice(self, slice_: ResourceSlice) -> None:
        self._touch(self.inventory.apply_slice(slice_))

    def remove_slice(self, name: str) -> None:
        self._touch(self.inventory.remove_slice(name))

    def apply_class(self, device_class: DeviceClass) -> None:
        self._classes[device_class.metadata.name] = device_class

    def remove_class(self, name: str) -> None:
        self._classes.discard(name)

    def apply_node(self, node: NodeFacts) -> None:
        self.inventory.apply_node(node)
        self._touch(frozenset((node.name,)))

    def remove_node(self, name: str) -> None:
        self.inventory.remove_node(name)
        self._touch(frozenset((name,)))

    def apply_claim(self, claim: ResourceClaim) -> None:
        """From now on, what this claim's status says is in use by it."""
        self._touch_pools(self.usage.apply(claim.metadata.key, claim.status.allocation))

    def remove_claim(self, key: ObjectKey) -> None:
        self._touch_pools(self.usage.apply(key, None))

    def hold(self, allocation: Allocation) -> None:
        """Keep results in use that belong to no claim that the index is told of, as a simulation does."""
        for result in allocation:
            self._touch_pools(self.usage.hold(result))

    # Questions

    def find_class(self, name: str) -> DeviceClass | None:
        return self._classes.get(name)

    def class_names(self) -> Iterator[str]:
        return iter(self._classes)

    def compile(self, claims: Sequence[ResourceClaim]) -> tuple[Program, View]:
        """The claims as a program, and how it sees devices. Claims of one template share both."""
        program = self._compiler.program(claims, self.find_class)
        return program, self._compiler.view(program)

    def allocate(self, node: str, claims: Sequence[ResourceClaim], limits: Limits = NO_LIMITS) -> Allocation | None:
        """Devices for all claims on this node, or None if they don't fit. Raises AllocationError."""
        program = self._compiler.program(claims, self.find_class)
        reach = self.inventory.reach(node)
        answer = self._answer(program, reach, limits)
        return self._finish(answer, reach, claims)

    def allocate_all(
        self, claims: Sequence[ResourceClaim], limits: Limits = NO_LIMITS
    ) -> Iterator[tuple[str, Allocation | AllocationError | None]]:
        """For each node what `allocate` gives."""
        program = self._compiler.program(claims, self.find_class)
        for nodes, answer in self._answers(program, limits):
            for name in nodes:
                try:
                    yield name, self._finish(answer, self.inventory.reach(name), claims)
                except AllocationError as error:
                    yield name, error

    def fitting(self, claims: Sequence[ResourceClaim], limits: Limits = NO_LIMITS) -> Fits:
        """On which nodes the claims fit."""
        program = self._compiler.program(claims, self.find_class)
        groups: list[FitGroup] = []
        for nodes, answer in self._answers(program, limits):
            if isinstance(answer, Recipe):
                groups.append(FitGroup(nodes, True, None))
                continue
            if isinstance(answer, DeadlineExceeded):
                groups.append(FitGroup(nodes, False, answer))
                continue
            reach = self.inventory.reach(nodes.first)
            groups.append(FitGroup(nodes, False, self._error(answer, reach, claims)))
        return Fits(tuple(groups))

    def room(self, claims: Sequence[ResourceClaim], limits: Limits = NO_LIMITS, at_most: int = COUNT_AT_MOST) -> int:
        """How many more times such claims fit into the cluster, one set after the other. Counts up to `at_most`."""
        found = 0
        fork = self.fork()
        program = self._compiler.program(claims, self.find_class)
        for nodes in [group for group, _ in fork._answers(program, limits)]:
            if all(each.pool.home for each in self.inventory.reach(nodes.first).pools):
                # Nodes that share nothing with others, and look the same: what fits on one fits on each.
                found += len(nodes) * fork._fill(nodes.first, claims, limits, at_most)
            else:
                for name in nodes:
                    found += fork._fill(name, claims, limits, at_most - found)
            if found >= at_most:
                return at_most
        return found

    def _fill(self, node: str, claims: Sequence[ResourceClaim], limits: Limits, at_most: int) -> int:
        """Allocate the claims again and again on this node, and keep all that in use."""
        for count in range(at_most):
            try:
                allocation = self.allocate(node, claims, limits)
            except DeadlineExceeded:
                raise
            except AllocationError:
                return count
            if allocation is None:
                return count
            if not any(not each.admin_access for result in allocation for each in result.devices.results):
                return at_most
            self.hold(allocation)
        return at_most

    # How an answer is found

    def _answers(self, program: Program, limits: Limits) -> Iterator[tuple[NodeGroup, Answer | DeadlineExceeded]]:
        view = self._compiler.view(program)
        grouping = self._groupings.get(view)
        if grouping is None:
            if len(self._groupings) >= MOST_GROUPINGS:
                del self._groupings[next(iter(self._groupings))]
            grouping = self._groupings[view] = Grouping()

        def find_key(name: str) -> GroupKey | None:
            return None if self.inventory.node(name) is None else self._group_key(view, self.inventory.reach(name))

        grouping.refresh(self.inventory.node_names, find_key)
        for _, nodes in grouping:
            reach = self.inventory.reach(nodes.first)
            if limits.renew is None:
                yield nodes, self._answer(program, reach, limits)
                continue
            limits.renew()
            try:
                answer: Answer | DeadlineExceeded = self._answer(program, reach, limits)
            except DeadlineExceeded as late:
                answer = late
            yield nodes, answer

    def _group_key(self, view: View, reach: Reach) -> GroupKey:
        """Pools of the node alone by their content; pools that others use too as they are, whatever is in use there."""
        return (
            OPTIONAL_NODE_OPERATIONS in reach.node.declared_features,
            reach.error,
            tuple(
                [
                    (view.shape(each.pool), each.mask, each.broken, self.occupancy(each.pool))
                    if each.pool.home
                    else each
                    for each in reach.pools
                ]
            ),
        )

    def _answer(self, program: Program, reach: Reach, limits: Limits) -> Answer:
        if reach.error is not None:
            raise reach.error
        view = self._compiler.view(program)
        shape = NodeShape(
            tuple([PoolPart(view.shape(each.pool), each.mask, each.broken) for each in reach.pools]),
            OPTIONAL_NODE_OPERATIONS in reach.node.declared_features,
        )
        table = program.tables.get(shape)
        if table is None:
            table = program.tables[shape] = Table(program, view, shape, self.statistics)
        if table.stop is not None:
            return table.stop
        occupancies = tuple([self.occupancy(each.pool) for each in reach.pools])
        if occupancies in table.answers:
            self.statistics.cache_hits += 1
            known: Answer = table.answers[occupancies]
            return known
        answer = self._search(table, occupancies, limits)
        if len(table.answers) >= MOST_ANSWERS:
            table.answers.clear()
        table.answers[occupancies] = answer
        return answer

    def _search(self, table: Table, occupancies: tuple[Occupancy, ...], limits: Limits) -> Answer:
        situation = Situation(table, occupancies)
        try:
            solution = find_solution(table, situation, limits, self.statistics)
        except Stopped as stopped:
            return stopped.stop
        return None if solution is None else make_recipe(table, solution)

    def _finish(
        self, answer: Answer | DeadlineExceeded, reach: Reach, claims: Sequence[ResourceClaim]
    ) -> Allocation | None:
        if isinstance(answer, Recipe):
            return make_results(answer, reach, self.gates, self._make_id)
        if isinstance(answer, DeadlineExceeded):
            raise answer
        error = self._error(answer, reach, claims)
        if error is not None:
            raise error
        return None

    def _error(self, answer: Stop | None, reach: Reach, claims: Sequence[ResourceClaim]) -> AllocationError | None:
        if answer is not None:
            return make_error(answer, reach, claims)
        invalid = reach.invalid_pools
        return InvalidPools(invalid) if invalid else None

    def occupancy(self, pool: Pool) -> Occupancy:
        """What is in use of the pool's devices."""
        use = self.usage.of(pool)
        if pool.occupancy is None or pool.occupancy[0] is not use:
            pool.occupancy = (use, find_occupancy(pool, use))
        return pool.occupancy[1]

    def _touch(self, nodes: Touched) -> None:
        for grouping in self._groupings.values():
            grouping.touch(nodes)

    def _touch_pools(self, pools: set[PoolID]) -> None:
        """Use of a pool that several nodes reach is looked up when it is needed; only a pool's only node is touched."""
        homes = frozenset(
            slice_.spec.node_name for id in pools for slice_ in self.inventory.pool_slices(id) if slice_.spec.node_name
        )
        if homes:
            self._touch(homes)


def allocate(
    slices: Sequence[ResourceSlice],
    classes: Sequence[DeviceClass],
    node: NodeFacts,
    claims: Sequence[ResourceClaim],
    *,
    state: AllocatedState = NOTHING_ALLOCATED,
    gates: FeatureGates = ALL_GATES,
    make_id: Callable[[], str],
    limits: Limits = NO_LIMITS,
) -> Allocation | None:
    """One question to a cluster as it stands."""
    index = Index(gates, make_id=make_id)
    for number, slice_ in enumerate(slices):
        index.inventory.apply_slice(slice_, key=number)
    for device_class in classes:
        index.apply_class(device_class)
    index.apply_node(node)
    index.usage.load(state)
    return index.allocate(node.name, claims, limits)
