from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dray.validation.statusauthz import NODE_NAME_EXTRA, Access, Decision, Requester
from tests.unit.validation.builders import (
    expect_accepted,
    expect_errors,
    make_allocation,
    make_claim,
    status_updated,
    without,
)

DRIVER = "system:serviceaccount:kube-system:driver"
ON_NODE = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}]}


class Authorizer:
    """Allows what it is told to, and remembers what it was asked."""

    def __init__(self, allows: Callable[[Access], bool]) -> None:
        self._allows = allows
        self.asked: list[str] = []

    def __call__(self, access: Access) -> Decision:
        self.asked.append(f"{access.verb} {access.subresource} {access.namespace}/{access.name}")
        return Decision(self._allows(access), "" if self._allows(access) else "no rule")


def claim(*drivers: str, allocation: dict[str, Any] | None = None) -> Any:
    results = [{"request": "gpu", "driver": driver, "pool": "p", "device": "d"} for driver in ("a.com", "b.com")]
    devices = [{"driver": driver, "pool": "p", "device": "d"} for driver in drivers]
    allocated = {"devices": {"results": results}, "nodeSelector": ON_NODE}
    return make_claim(status={"allocation": allocation or allocated, "devices": devices})


def requester(authorizer: Authorizer, user: str = DRIVER, *nodes: str, verb: str = "update") -> Requester:
    return Requester(authorizer, user, {NODE_NAME_EXTRA: nodes} if nodes else {}, verb)


def test_nothing_is_asked_when_nothing_changes() -> None:
    authorizer = Authorizer(lambda access: False)
    expect_accepted(status_updated(claim("a.com"), claim("a.com"), requester=requester(authorizer)))
    assert authorizer.asked == []


def test_an_allocation_needs_permission_to_bind_in_the_whole_cluster() -> None:
    allowing = Authorizer(lambda access: access.subresource == "binding")
    new = make_claim(status={"allocation": make_allocation("gpu-0")})
    expect_accepted(status_updated(new, make_claim(), requester=requester(allowing, "scheduler", verb="patch")))
    assert allowing.asked == ["patch binding /"]
    outcome = status_updated(new, make_claim(), requester=requester(Authorizer(lambda access: False), "eve"))
    expect_errors(outcome, "status.allocation: Forbidden: changing status.allocation or status.reservedFor requires")
    assert outcome.errors[0].detail.endswith(
        'resourceclaims.resource.k8s.io is forbidden: User "eve" cannot update resource "resourceclaims/binding" '
        'in API group "resource.k8s.io" at the cluster scope: no rule'
    )


def test_each_driver_that_changed_is_asked_for() -> None:
    authorizer = Authorizer(lambda access: True)
    expect_accepted(status_updated(claim("b.com"), claim("a.com"), requester=requester(authorizer)))
    assert authorizer.asked == [
        "arbitrary-node:update driver default/a.com",
        "arbitrary-node:update driver default/b.com",
    ]


def test_a_driver_on_the_node_needs_less() -> None:
    authorizer = Authorizer(lambda access: access.verb.startswith("associated-node:"))
    expect_accepted(status_updated(claim("a.com"), claim(), requester=requester(authorizer, DRIVER, "node-1")))
    assert authorizer.asked == ["associated-node:update driver default/a.com"]


def test_a_driver_on_the_node_may_fall_back() -> None:
    authorizer = Authorizer(lambda access: access.verb.startswith("arbitrary-node:"))
    expect_accepted(status_updated(claim("a.com"), claim(), requester=requester(authorizer, DRIVER, "node-1")))
    assert [asked.partition(" ")[0] for asked in authorizer.asked] == [
        "associated-node:update",
        "arbitrary-node:update",
    ]


@pytest.mark.parametrize(
    ("user", "nodes"),
    [
        (DRIVER, ()),
        (DRIVER, ("node-2",)),
        (DRIVER, ("node-1", "node-1")),
        ("node-1", ("node-1",)),
        ("system:serviceaccount:kube-system:driver:x", ("node-1",)),
    ],
)
def test_others_are_not_on_the_node(user: str, nodes: tuple[str, ...]) -> None:
    authorizer = Authorizer(lambda access: access.verb.startswith("associated-node:"))
    outcome = status_updated(claim("a.com"), claim(), requester=requester(authorizer, user, *nodes))
    expect_errors(
        outcome, 'status.devices: Forbidden: changing status.devices requires resource="resourceclaims/driver"'
    )
    assert authorizer.asked == ["arbitrary-node:update driver default/a.com"]


def test_without_the_gate_nobody_is_asked() -> None:
    authorizer = Authorizer(lambda access: False)
    gates = without("DRAResourceClaimGranularStatusAuthorization")
    expect_accepted(status_updated(claim("a.com"), claim(), requester=requester(authorizer), gates=gates))
    assert authorizer.asked == []
