"""For the checker: whether a chosen set of devices satisfies a claim's constraints."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from dray.allocator.verify_pools import Published
from dray.api.claims import DeviceConstraint, DeviceDerivedAttribute
from dray.api.devices import DeviceAttribute
from dray.api.features import FeatureGates
from dray.cel.devices import bind_device
from dray.cel.errors import CelError
from dray.cel.program import compile_constraint, compile_derived


class Chosen(NamedTuple):
    """A device that was chosen for a request."""

    request: str
    """`request` or `request/subrequest`."""
    published: Published
    derived: tuple[DeviceDerivedAttribute, ...]


def is_covered(names: Sequence[str], request: str) -> bool:
    """Whether a list of requests, empty for all, includes this one; a request includes its subrequests."""
    return not names or request in names or request.partition("/")[0] in names


def iter_problems(
    constraints: Sequence[DeviceConstraint], chosen: Sequence[Chosen], gates: FeatureGates
) -> Iterator[tuple[int, str]]:
    """The constraints that don't hold, by position, and why."""
    for position, constraint in enumerate(constraints):
        members = [each for each in chosen if is_covered(constraint.requests, each.request)]
        try:
            problem = _find_problem(constraint, members, gates)
        except CelError as error:
            problem = str(error)
        if problem is not None:
            yield position, problem


def _find_problem(constraint: DeviceConstraint, members: list[Chosen], gates: FeatureGates) -> str | None:
    lists = "DRAListTypeAttributes" in gates
    if constraint.match_attribute is not None:
        name = constraint.match_attribute
        return _check_attribute(name, members, gates, lambda values: _find_mismatch(name, values, lists))
    if constraint.distinct_attribute is not None:
        name = constraint.distinct_attribute
        return _check_attribute(name, members, gates, lambda values: _find_repetition(name, values, lists))
    if constraint.cel is not None:
        if not members:
            return None
        program = compile_constraint(constraint.cel.expression, gates=gates)
        devices = [bind_device(each.published.id.driver, each.published.device) for each in members]
        return None if program.matches(devices) else f"is false for {_names(members)}: {program.text}"
    return "is of no known kind"


Values = list[tuple[Chosen, DeviceAttribute]]


def _check_attribute(
    name: str, members: list[Chosen], gates: FeatureGates, find: Callable[[Values], str | None]
) -> str | None:
    values: Values = []
    for each in members:
        attribute = _attribute(each, name, gates)
        if attribute is None:
            return f"{each.published.id} has no attribute {name}"
        values.append((each, attribute))
    return find(values)


def _attribute(chosen: Chosen, name: str, gates: FeatureGates) -> DeviceAttribute | None:
    """Derived attributes first, then the full name, then the name in the driver's own domain."""
    published = chosen.published
    driver, attributes = published.id.driver, published.device.attributes
    for derived in chosen.derived:
        if derived.name == name:
            program = compile_derived(derived.expression, gates=gates)
            value: object = program.evaluate(bind_device(driver, published.device))
            return value if isinstance(value, DeviceAttribute) else None
    domain, _, bare = name.partition("/")
    return attributes.get(name) or (attributes.get(bare) if domain == driver else None)


def _find_mismatch(name: str, values: Values, lists: bool) -> str | None:
    if not lists:
        scalars = {_scalar(attribute) for _, attribute in values}
        if len(values) > 1 and (len(scalars) > 1 or None in scalars):
            return f"{name} isn't the same for all devices: {_listing(values)}"
        return None
    sets = [_as_set(attribute) for _, attribute in values]
    if sets and not frozenset.intersection(*sets):
        return f"{name} has no value that all devices have in common: {_listing(values)}"
    return None


def _find_repetition(name: str, values: Values, lists: bool) -> str | None:
    for (one, mine), (other, theirs) in combinations(values, 2):
        if lists:
            same = bool(_as_set(mine) & _as_set(theirs))
        else:
            # A list is accepted as the first device's value only: nothing can be told apart from it.
            same = _scalar(theirs) is None or _scalar(mine) == _scalar(theirs)
        if same:
            return f"{one.published.id} and {other.published.id} have {name} in common: {format_attribute(mine)}"
    if lists and any(not _as_set(attribute) for _, attribute in values):
        return f"{name} has no value: {_listing(values)}"
    return None


def _scalar(attribute: DeviceAttribute) -> Hashable:
    """Type and value; None for a list or nothing."""
    for kind in ("string_value", "int_value", "bool_value", "version_value"):
        if (value := getattr(attribute, kind)) is not None:
            return kind, value
    return None


def _as_set(attribute: DeviceAttribute) -> frozenset[Hashable]:
    for kind in ("string", "int", "bool", "version"):
        if (value := getattr(attribute, f"{kind}_value")) is not None:
            return frozenset({(kind, value)})
        if (values := getattr(attribute, f"{kind}_values")) is not None:
            return frozenset((kind, each) for each in values)
    return frozenset()


def format_attribute(attribute: DeviceAttribute) -> str:
    """The value as people write it."""
    for kind in ("string", "int", "bool", "version"):
        if (value := getattr(attribute, f"{kind}_value")) is not None:
            return str(value).lower() if kind == "bool" else str(value)
        if (values := getattr(attribute, f"{kind}_values")) is not None:
            return ", ".join(map(str, values))
    return "nothing"


def _listing(values: Values) -> str:
    return "; ".join(f"{each.published.id.device} {format_attribute(attribute)}" for each, attribute in values)


def _names(members: list[Chosen]) -> str:
    return ", ".join(each.published.id.device for each in members)
