"""Claims that an exhaustive search would not finish: each is answered after few steps."""

from __future__ import annotations

from dray.allocator.index import Index
from dray.api.claims import ResourceClaim
from tests.unit.allocator.world import (
    ask,
    make_claim,
    make_constraint,
    make_device,
    make_index,
    make_request,
    make_slice,
)

D = "gpu.example.com"


def steps_of(index: Index, *claims: ResourceClaim) -> int:
    assert ask(index, *claims) is None
    return index.statistics.steps


def grid(rows: int, columns: int) -> Index:
    """Devices with all pairs of two attributes, and a number."""
    devices = [
        make_device(f"dev-{row}-{column}", {"row": row, "column": column, "id": row * columns + column})
        for row in range(rows)
        for column in range(columns)
    ]
    return make_index(make_slice(devices))


def test_two_constraints_that_hold_alone_but_not_together() -> None:
    both = [make_constraint(match=f"{D}/row"), make_constraint(match=f"{D}/column")]
    assert steps_of(grid(6, 6), make_claim(make_request(count=2), constraints=both)) < 10


def test_distinct_values_that_several_requests_need_together() -> None:
    claim = make_claim(
        *(make_request(name, 2) for name in "abc"), constraints=[make_constraint(distinct=f"{D}/column")]
    )
    assert steps_of(grid(5, 5), claim) < 10


def test_a_common_value_for_several_requests_that_too_few_devices_have() -> None:
    claim = make_claim(*(make_request(name, 3) for name in "abc"), constraints=[make_constraint(match=f"{D}/row")])
    assert steps_of(grid(4, 8), claim) < 10


def test_a_later_claim_that_fits_nowhere_is_not_tried_with_every_choice_of_an_earlier_one() -> None:
    """The lists of three devices always meet, which the look-ahead doesn't see; alone the claim fails soon."""
    devices = [make_device(f"dev-{number}", {"id": number}) for number in range(20)]
    ring = [make_device(f"link-{number}", {"ends": [number, (number + 1) % 5]}) for number in range(5)]
    index = make_index(make_slice([*devices, *ring]))
    has_ends = f'has(device.attributes["{D}"].ends)'
    plain = make_claim(*(make_request(f"r{number}", 3) for number in range(4)), name="plain")
    links = make_claim(make_request("links", 3, has_ends), constraints=[make_constraint(distinct=f"{D}/ends")])
    assert steps_of(index, plain, links) < 200


def test_requests_without_a_part_in_a_failure_are_skipped_on_the_way_back() -> None:
    ring = [make_device(f"link-{number}", {"ends": [number, (number + 1) % 7]}) for number in range(7)]
    others = [make_device(f"dev-{number}", {"id": number}) for number in range(20)]
    index = make_index(make_slice([*ring, *others]))
    has_ends = f'has(device.attributes["{D}"].ends)'
    by_id = [f'device.attributes["{D}"].?id.orValue({number}) % 3 != {number}' for number in range(3)]
    claim = make_claim(
        make_request("links", 1, has_ends),
        *(make_request(f"r{number}", 2, selector) for number, selector in enumerate(by_id)),
        make_request("more-links", 3, has_ends),
        constraints=[make_constraint("links", "more-links", distinct=f"{D}/ends")],
    )
    assert steps_of(index, claim) < 400


def test_shares_that_do_not_fit_into_what_is_left() -> None:
    devices = [
        make_device(f"nic-{number}", capacity={"bandwidth": "100"}, allow_multiple_allocations=True)
        for number in range(6)
    ]
    requests = [make_request(f"r{number}", capacity={"bandwidth": "60"}) for number in range(7)]
    assert steps_of(make_index(make_slice(devices)), make_claim(*requests)) < 100
