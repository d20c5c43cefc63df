"""From a solution to what is written into a claim's status.

A `Recipe` is what a solution means for every node of its shape; the names of pools and devices are filled in per node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dray.allocator.errors import NodeSelectionFailed
from dray.allocator.inventory import Reach
from dray.allocator.program import ClaimProgram
from dray.allocator.requests import Alternative
from dray.allocator.search import Solution
from dray.allocator.tables import Table
from dray.api.claims import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
)
from dray.api.features import FeatureGates
from dray.api.nodeselectors import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from dray.api.quantities import Quantity

MakeID = Callable[[], str]
"""Gives a new UUID for a share with every call."""


class DeviceRecipe(NamedTuple):
    alternative: Alternative
    pool: int
    position: int
    consumed: dict[str, Quantity] | None
    """None for a device that isn't shared."""


class ClaimRecipe(NamedTuple):
    devices: tuple[DeviceRecipe, ...]
    config: tuple[DeviceAllocationConfiguration, ...]


@dataclass(frozen=True, slots=True)
class Recipe:
    claims: tuple[ClaimRecipe, ...]


def make_recipe(table: Table, solution: Solution) -> Recipe:
    devices: list[list[DeviceRecipe]] = [[] for _ in table.program.claims]
    chosen = {slot.number: slot.options[0].alternative for slot in table.slots if slot.options}
    for option, position in solution:
        alternative = option.alternative
        consumed: dict[str, Quantity] | None = None
        if table.shareable >> position & 1:
            need = table.need(option.profile, position)
            consumed = need.consumed if need is not None else {}
        pool, place = table.locate(position)
        devices[table.slots[option.slot].claim].append(DeviceRecipe(alternative, pool, place, consumed))
        chosen[option.slot] = alternative
    recipes: list[ClaimRecipe] = []
    for number, program in enumerate(table.program.claims):
        alternatives = [chosen[slot.number] for slot in table.slots if slot.claim == number]
        recipes.append(ClaimRecipe(tuple(devices[number]), _configuration(program, alternatives)))
    return Recipe(tuple(recipes))


def _configuration(program: ClaimProgram, chosen: Sequence[Alternative]) -> tuple[DeviceAllocationConfiguration, ...]:
    """First the classes' in the order of their first use, then the claim's own that concern a request as chosen."""
    if not program.spec.devices.config and not any(alternative.device_class.spec.config for alternative in chosen):
        return ()
    users: dict[str, list[Alternative]] = {}
    for alternative in chosen:
        users.setdefault(alternative.device_class.metadata.name, []).append(alternative)
    found = [
        DeviceAllocationConfiguration(
            source="FromClass", requests=tuple(each.full_name for each in using), opaque=config.opaque
        )
        for using in users.values()
        for config in using[0].device_class.spec.config
    ]
    found += [
        DeviceAllocationConfiguration(source="FromClaim", requests=config.requests, opaque=config.opaque)
        for config in program.spec.devices.config
        if not config.requests or any(_is_named(each, config.requests) for each in chosen)
    ]
    return tuple(
        DeviceAllocationConfiguration(source=config.source, opaque=config.opaque)
        if config.requests and all(_is_named(each, config.requests) for each in chosen)
        else config
        for config in found
    )


def _is_named(alternative: Alternative, names: Sequence[str]) -> bool:
    return (alternative.parent or alternative.name) in names or alternative.full_name in names


def make_results(recipe: Recipe, reach: Reach, gates: FeatureGates, make_id: MakeID) -> tuple[AllocationResult, ...]:
    """One result per claim. Raises NodeSelectionFailed if the devices' node selectors can't be combined."""
    binding = "DRADeviceBindingConditions" in gates and "DRAResourceClaimDeviceStatus" in gates
    return tuple(
        AllocationResult(
            devices=DeviceAllocationResult(
                results=tuple([_result(each, reach, binding, make_id) for each in claim.devices]), config=claim.config
            ),
            node_selector=_node_selector(claim.devices, reach),
        )
        for claim in recipe.claims
    )


def _result(recipe: DeviceRecipe, reach: Reach, binding: bool, make_id: MakeID) -> DeviceRequestAllocationResult:
    alternative, pool_number, position, consumed = recipe
    pool = reach.pools[pool_number].pool
    device = pool.devices[position]
    skipped = pool.slice_of(position).spec.skip_node_operations
    if consumed is None and not skipped and not (device.binding_conditions or device.binding_failure_conditions):
        return DeviceRequestAllocationResult(
            request=alternative.full_name,
            driver=pool.id.driver,
            pool=pool.id.pool,
            device=device.name,
            admin_access=alternative.admin or None,
            tolerations=alternative.tolerations,
        )
    return DeviceRequestAllocationResult(
        request=alternative.full_name,
        driver=pool.id.driver,
        pool=pool.id.pool,
        device=device.name,
        admin_access=alternative.admin or None,
        tolerations=alternative.tolerations,
        binding_conditions=device.binding_conditions if binding else (),
        binding_failure_conditions=device.binding_failure_conditions if binding else (),
        share_id=None if consumed is None else make_id(),
        consumed_capacity=consumed or {},
        skip_node_operations=skipped,
    )


def _node_selector(devices: Sequence[DeviceRecipe], reach: Reach) -> NodeSelector | None:
    """Where the allocation can be used: one node, or what all devices ask of a node, or anywhere."""
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for recipe in devices:
        pool = reach.pools[recipe.pool].pool
        device = pool.devices[recipe.position]
        spec = pool.slice_of(recipe.position).spec
        owner = device if spec.per_device_node_selection else spec
        if owner.node_name is not None or device.binds_to_node:
            return _only(reach.node.name)
        if owner.node_selector is None or not owner.node_selector.node_selector_terms:
            continue
        first, *others = owner.node_selector.node_selector_terms
        if others:
            problem = f"unsupported node selector with {len(others) + 1} terms"
            raise NodeSelectionFailed(f"device {pool.device_id(recipe.position)}", problem)
        _add_new(fields, first.match_fields)
        _add_new(expressions, first.match_expressions)
    if not fields and not expressions:
        return None
    term = NodeSelectorTerm(match_expressions=tuple(expressions), match_fields=tuple(fields))
    return NodeSelector(node_selector_terms=(term,))


def _only(node: str) -> NodeSelector:
    requirement = NodeSelectorRequirement(key="metadata.name", operator="In", values=(node,))
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(requirement,)),))


def _add_new(known: list[NodeSelectorRequirement], requirements: Sequence[NodeSelectorRequirement]) -> None:
    for each in requirements:
        if not any(
            each.key == other.key and each.operator == other.operator and set(each.values) == set(other.values)
            for other in known
        ):
            known.append(each)
