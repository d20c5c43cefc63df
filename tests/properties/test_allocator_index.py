"""The index after any sequence of changes and forks answers as one that is built anew; forks never see each other."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dray.allocator.errors import AllocationError
from dray.allocator.index import Index
from dray.allocator.nodes import NodeFacts
from dray.api.claims import ResourceClaim
from dray.api.classes import DeviceClass
from dray.api.devices import Device
from dray.api.meta import ObjectKey
from dray.api.nodeselectors import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from dray.api.slices import ResourceSlice
from tests.unit.allocator.world import (
    DRIVER,
    make_claim,
    make_class,
    make_constraint,
    make_device,
    make_holder,
    make_request,
    make_slice,
    names,
)

NODES = ("node-a", "node-b", "node-c")
POOLS = ("node-a", "node-b", "node-c", "shared", "rack")
DEVICES = tuple(f"dev-{number}" for number in range(3))
QUESTIONS = (
    (make_claim(make_request(count=1)),),
    (make_claim(make_request(count=2), constraints=[make_constraint(match=f"{DRIVER}/numa")]),),
    (make_claim(make_request("a"), name="one"), make_claim(make_request("b", 2), name="two")),
)


@dataclass
class Recorded:
    """What an index was told, and the index."""

    index: Index
    slices: dict[str, ResourceSlice] = field(default_factory=dict)
    nodes: dict[str, NodeFacts] = field(default_factory=dict)
    classes: dict[str, DeviceClass] = field(default_factory=dict)
    claims: dict[ObjectKey, ResourceClaim] = field(default_factory=dict)

    def fork(self) -> Recorded:
        return Recorded(self.index.fork(), dict(self.slices), dict(self.nodes), dict(self.classes), dict(self.claims))

    def rebuilt(self) -> Index:
        index = make_empty()
        for slice_ in self.slices.values():
            index.apply_slice(slice_)
        for node in self.nodes.values():
            index.apply_node(node)
        for device_class in self.classes.values():
            index.apply_class(device_class)
        for claim in self.claims.values():
            index.apply_claim(claim)
        return index


def make_empty() -> Index:
    return Index(make_id=lambda: "00000000-0000-0000-0000-000000000000")


def ask_all(index: Index) -> list[object]:
    answers: list[object] = []
    for claims in QUESTIONS:
        given_ = {
            name: str(answer) if isinstance(answer, AllocationError) else names(answer)
            for name, answer in index.allocate_all(claims)
        }
        fits = index.fitting(claims)
        assert sorted(fits.nodes()) == sorted(name for name, answer in given_.items() if isinstance(answer, list))
        assert fits.count == len(list(fits.nodes()))
        answers.append(given_)
    return answers


@st.composite
def devices(draw: st.DrawFn) -> tuple[Device, ...]:
    chosen = draw(st.lists(st.sampled_from(DEVICES), unique=True))
    return tuple(make_device(name, {"numa": draw(st.integers(0, 1))}) for name in chosen)


@st.composite
def slices(draw: st.DrawFn) -> ResourceSlice:
    pool = draw(st.sampled_from(POOLS))
    generation = draw(st.integers(1, 2))
    count = draw(st.sampled_from((1, 1, 1, 2)))
    name = f"{pool}-{draw(st.integers(0, 1))}"
    if pool == "shared":
        return make_slice(
            draw(devices()), name=name, pool=pool, node=None, all_nodes=True, generation=generation, count=count
        )
    if pool == "rack":
        rack = NodeSelectorRequirement(key="rack", operator="In", values=(draw(st.sampled_from("xy")),))
        selector = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=(rack,)),))
        return make_slice(
            draw(devices()), name=name, pool=pool, node=None, node_selector=selector, generation=generation, count=count
        )
    # Now and then a slice of another node's pool: one pool with devices on several nodes.
    node = draw(st.sampled_from((pool, pool, pool, *NODES)))
    return make_slice(draw(devices()), name=name, pool=pool, node=node, generation=generation, count=count)


@st.composite
def changes(draw: st.DrawFn) -> tuple[str, object]:
    kind = draw(
        st.sampled_from(
            (
                "slice",
                "slice",
                "slice",
                "no slice",
                "node",
                "no node",
                "claim",
                "claim",
                "no claim",
                "class",
                "no class",
                "fork",
            )
        )
    )
    match kind:
        case "slice":
            return kind, draw(slices())
        case "no slice":
            return kind, f"{draw(st.sampled_from(POOLS))}-{draw(st.integers(0, 1))}"
        case "node":
            return kind, NodeFacts(draw(st.sampled_from(NODES)), {"rack": draw(st.sampled_from("xy"))})
        case "no node":
            return kind, draw(st.sampled_from(NODES))
        case "claim":
            held = draw(st.lists(st.sampled_from(DEVICES), unique=True))
            return kind, make_holder(f"holder-{draw(st.integers(0, 2))}", *held, pool=draw(st.sampled_from(POOLS)))
        case "no claim":
            return kind, ObjectKey("default", f"holder-{draw(st.integers(0, 2))}")
        case "class":
            selectors = (f'device.driver == "{DRIVER}"', *draw(st.lists(st.just("true"), max_size=1)))
            return kind, make_class("gpu", *selectors)
    return kind, None


def apply(recorded: Recorded, kind: str, value: object) -> None:
    index = recorded.index
    match kind, value:
        case "slice", ResourceSlice():
            recorded.slices[value.metadata.name] = value
            index.apply_slice(value)
        case "no slice", str():
            recorded.slices.pop(value, None)
            index.remove_slice(value)
        case "node", NodeFacts():
            recorded.nodes[value.name] = value
            index.apply_node(value)
        case "no node", str():
            recorded.nodes.pop(value, None)
            index.remove_node(value)
        case "claim", ResourceClaim():
            recorded.claims[value.metadata.key] = value
            index.apply_claim(value)
        case "no claim", ObjectKey():
            recorded.claims.pop(value, None)
            index.remove_claim(value)
        case "class", DeviceClass():
            recorded.classes["gpu"] = value
            index.apply_class(value)
        case "no class", None:
            recorded.classes.pop("gpu", None)
            index.remove_class("gpu")


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans(), changes()), min_size=5, max_size=40))
@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
def test_after_any_changes_and_forks_every_index_answers_as_if_built_anew(
    events: list[tuple[int, bool, tuple[str, object]]],
) -> None:
    recorded = [Recorded(make_empty())]
    apply(recorded[0], "class", make_class("gpu"))
    for node in NODES:
        apply(recorded[0], "node", NodeFacts(node, {"rack": "x"}))
    for number, asks, (kind, value) in events:
        chosen = recorded[number % len(recorded)]
        if kind == "fork":
            recorded.append(chosen.fork())
            continue
        apply(chosen, kind, value)
        if asks:
            assert ask_all(chosen.index) == ask_all(chosen.rebuilt())
    for each in recorded:
        assert ask_all(each.index) == ask_all(each.rebuilt())
