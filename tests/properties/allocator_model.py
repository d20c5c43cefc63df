"""The allocator as simple as it can be: Kubernetes' exhaustive search written down, without masks, caches or pruning.

It knows one node, whose pools are complete and valid; everything else follows the definitions. Used to check the real
one on small inputs. Shares no code with it, apart from the API types, quantities and CEL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from dray.api.claims import (
    DeviceConstraint,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
)
from dray.api.classes import DeviceClass
from dray.api.devices import Device, DeviceAttribute, DeviceTaint
from dray.api.slices import ResourceSlice
from dray.cel.devices import bind_device
from dray.cel.errors import CelError
from dray.cel.program import compile_constraint, compile_selector

Picked = tuple[str, str, str]
"""Request, pool and device."""


class ModelError(Exception):
    """Allocation stops with an error."""


class _LimitExceeded(Exception):
    pass


@dataclass(frozen=True)
class Candidate:
    driver: str
    pool: str
    device: Device

    @property
    def id(self) -> tuple[str, str, str]:
        return (self.driver, self.pool, self.device.name)


@dataclass(frozen=True)
class Wish:
    """One request or subrequest."""

    name: str
    parent: str
    spec: ExactDeviceRequest | DeviceSubRequest
    device_class: DeviceClass
    everything: tuple[Candidate, ...] = ()

    @property
    def full_name(self) -> str:
        return f"{self.parent}/{self.name}" if self.parent else self.name

    @property
    def count(self) -> int:
        return len(self.everything) if self.spec.allocation_mode == "All" else self.spec.count

    @property
    def admin(self) -> bool:
        return isinstance(self.spec, ExactDeviceRequest) and bool(self.spec.admin_access)

    def is_covered_by(self, constraint: DeviceConstraint) -> bool:
        names = constraint.requests
        return not names or (self.parent or self.name) in names or self.full_name in names


@dataclass
class Attempt:
    """Everything that has been picked, in order: (claim, request, wish, device)."""

    picks: list[tuple[int, int, Wish, Candidate]] = field(default_factory=list)

    def of_claim(self, claim: int) -> list[tuple[int, int, Wish, Candidate]]:
        return [pick for pick in self.picks if pick[0] == claim]


class Model:
    def __init__(
        self,
        slices: Sequence[ResourceSlice],
        classes: Sequence[DeviceClass],
        used: set[tuple[str, str, str]],
        consumed: Mapping[tuple[str, str, str], Mapping[str, Fraction]],
        *,
        lists: bool = True,
    ) -> None:
        self.used = used
        self.consumed = consumed
        self.lists = lists
        self.classes = {each.metadata.name: each for each in classes}
        self.candidates: list[Candidate] = []
        self.counters: dict[tuple[str, str, str], dict[str, Fraction]] = {}
        in_order = sorted(slices, key=lambda each: (each.spec.driver, each.spec.pool.name, each.metadata.name))
        for slice_ in in_order:
            spec = slice_.spec
            for counter_set in spec.shared_counters:
                self.counters[spec.driver, spec.pool.name, counter_set.name] = {
                    name: counter.value.as_fraction() for name, counter in counter_set.counters.items()
                }
            self.candidates += [Candidate(spec.driver, spec.pool.name, device) for device in spec.devices]
        self.ids = {candidate.id: candidate for candidate in self.candidates}
        for id in {*used, *consumed}:
            if id in self.ids:
                for key, name, amount in self._draws(self.ids[id]):
                    self.counters[key][name] -= amount

    def allocate(self, claims: Sequence[ResourceClaim]) -> list[list[Picked]] | None:
        self.claims = claims
        self.wishes = [[self._read(request) for request in claim.spec.devices.requests] for claim in claims]
        for wishes in self.wishes:
            if sum(min(wish.count for wish in request) for request in wishes) > 32:
                raise ModelError("too many devices")
        attempt = Attempt()
        if not self._fill(0, 0, attempt):
            return None
        return [
            [(wish.full_name, device.pool, device.device.name) for _, _, wish, device in attempt.of_claim(number)]
            for number in range(len(claims))
        ]

    # Reading the claims

    def _read(self, request: DeviceRequest) -> list[Wish]:
        if request.exactly is not None:
            return [self._make_wish(request.name, "", request.exactly)]
        return [self._make_wish(sub.name, request.name, sub) for sub in request.first_available]

    def _make_wish(self, name: str, parent: str, spec: ExactDeviceRequest | DeviceSubRequest) -> Wish:
        device_class = self.classes.get(spec.device_class_name)
        if device_class is None:
            raise ModelError("no such class")
        wish = Wish(name, parent, spec, device_class)
        if spec.allocation_mode != "All":
            return wish
        everything = tuple(
            each for each in self.candidates if self._is_selected(wish, each) and self._has_capacity(wish, each, {})
        )
        return Wish(name, parent, spec, device_class, everything)

    def _is_selected(self, wish: Wish, candidate: Candidate) -> bool:
        value = bind_device(candidate.driver, candidate.device)
        for selector in (*wish.device_class.spec.selectors, *wish.spec.selectors):
            assert selector.cel is not None
            try:
                if not compile_selector(selector.cel.expression).matches(value):
                    return False
            except CelError as error:
                raise ModelError(str(error)) from error
        return True

    # The search

    def _fill(self, claim: int, request: int, attempt: Attempt) -> bool:
        """Fill this request and everything after it."""
        if claim == len(self.claims):
            return True
        if request == len(self.wishes[claim]):
            try:
                return self._fill(claim + 1, 0, attempt)
            except _LimitExceeded:
                return False
        wishes = self.wishes[claim][request]
        exceeded = 0
        for wish in wishes:
            try:
                if self._pick(claim, request, wish, 0, 0, attempt):
                    return True
            except _LimitExceeded:
                exceeded += 1
        if exceeded == len(wishes):
            raise _LimitExceeded
        return False

    def _pick(self, claim: int, request: int, wish: Wish, number: int, start: int, attempt: Attempt) -> bool:
        """Pick device `number` of the request, from position `start` on, and everything after it."""
        takes_all = wish.spec.allocation_mode == "All"
        if takes_all and not wish.everything:
            return False
        if number == wish.count:
            return self._sets_hold(claim, request, attempt) and self._fill(claim, request + 1, attempt)
        if len(attempt.of_claim(claim)) + wish.count - number > 32:
            raise _LimitExceeded
        if takes_all:
            candidate = wish.everything[number]
            if not self._is_available(claim, wish, candidate, attempt):
                return False
            if not self._satisfies(claim, wish, candidate, attempt):
                raise ModelError("a constraint rejects one of all devices")
            if not self._has_capacity(wish, candidate, self._shares(candidate, attempt)):
                return False
            return self._try(claim, request, wish, number, 0, candidate, attempt)
        for position in range(start, len(self.candidates)):
            candidate = self.candidates[position]
            if self._is_taken(claim, wish, candidate, attempt) or not self._is_selected(wish, candidate):
                continue
            if not self._has_capacity(wish, candidate, self._shares(candidate, attempt)):
                continue
            if not self._is_available(claim, wish, candidate, attempt):
                continue
            if not self._satisfies(claim, wish, candidate, attempt):
                continue
            if self._try(claim, request, wish, number, position + 1, candidate, attempt):
                return True
        return False

    def _try(
        self, claim: int, request: int, wish: Wish, number: int, start: int, candidate: Candidate, attempt: Attempt
    ) -> bool:
        attempt.picks.append((claim, request, wish, candidate))
        try:
            if self._pick(claim, request, wish, number + 1, start, attempt):
                return True
        except _LimitExceeded:
            attempt.picks.pop()
            raise
        attempt.picks.pop()
        return False

    # Single devices

    def _is_taken(self, claim: int, wish: Wish, candidate: Candidate, attempt: Attempt) -> bool:
        whole = [
            number
            for number, _, _, other in attempt.picks
            if other.id == candidate.id and not other.device.allow_multiple_allocations
        ]
        if wish.admin:
            return claim in whole
        return candidate.id in self.used or bool(whole)

    def _is_available(self, claim: int, wish: Wish, candidate: Candidate, attempt: Attempt) -> bool:
        if self._is_taken(claim, wish, candidate, attempt):
            return False
        blocking = [taint for taint in candidate.device.taints if taint.effect in ("NoSchedule", "NoExecute")]
        if not all(self._tolerates(wish, taint) for taint in blocking):
            return False
        is_shared = candidate.id in self.consumed or any(other.id == candidate.id for *_, other in attempt.picks)
        if candidate.device.allow_multiple_allocations and is_shared:
            return True
        return self._has_counters(candidate, attempt)

    def _tolerates(self, wish: Wish, taint: DeviceTaint) -> bool:
        return any(
            (not each.effect or each.effect == taint.effect)
            and (not each.key or each.key == taint.key)
            and (each.operator == "Exists" or each.value == taint.value)
            for each in wish.spec.tolerations
        )

    def _consumption(self, wish: Wish, device: Device) -> dict[str, Fraction] | None:
        """Without policies: what is requested, else everything."""
        requested = wish.spec.capacity.requests if wish.spec.capacity is not None else {}
        if any(name not in device.capacity for name in requested):
            return None
        return {name: requested.get(name, offered.value).as_fraction() for name, offered in device.capacity.items()}

    def _shares(self, candidate: Candidate, attempt: Attempt) -> dict[str, Fraction]:
        total = dict(self.consumed.get(candidate.id, {}))
        for _, _, wish, other in attempt.picks:
            if other.id == candidate.id and other.device.allow_multiple_allocations:
                for name, amount in (self._consumption(wish, other.device) or {}).items():
                    total[name] = total.get(name, Fraction(0)) + amount
        return total

    def _has_capacity(self, wish: Wish, candidate: Candidate, used: Mapping[str, Fraction]) -> bool:
        needed = self._consumption(wish, candidate.device)
        return needed is not None and all(
            amount + used.get(name, 0) <= candidate.device.capacity[name].value.as_fraction()
            for name, amount in needed.items()
        )

    def _draws(self, candidate: Candidate) -> Iterator[tuple[tuple[str, str, str], str, Fraction]]:
        for consumption in candidate.device.consumes_counters:
            key = (candidate.driver, candidate.pool, consumption.counter_set)
            for name, counter in consumption.counters.items():
                yield key, name, counter.value.as_fraction()

    def _has_counters(self, candidate: Candidate, attempt: Attempt) -> bool:
        if not candidate.device.consumes_counters:
            return True
        left = {key: dict(counters) for key, counters in self.counters.items()}
        counted: set[tuple[str, str, str]] = set()
        for *_, other in [*attempt.picks, (0, 0, None, candidate)]:
            if other.device.allow_multiple_allocations:
                if other.id in counted or other.id in self.consumed:
                    continue
                counted.add(other.id)
            for key, name, amount in self._draws(other):
                left[key][name] -= amount
        mine = (candidate.driver, candidate.pool)
        return all(amount >= 0 for key, counters in left.items() if key[:2] == mine for amount in counters.values())

    # Constraints

    def _satisfies(self, claim: int, wish: Wish, candidate: Candidate, attempt: Attempt) -> bool:
        for constraint in self.claims[claim].spec.devices.constraints:
            name = constraint.match_attribute or constraint.distinct_attribute
            if name is None or not wish.is_covered_by(constraint):
                continue
            mine = self._attribute(candidate, name)
            if mine is None:
                return False
            others = [
                self._attribute(other, name)
                for _, _, covered, other in attempt.of_claim(claim)
                if covered.is_covered_by(constraint)
            ]
            compatible = self._match if constraint.match_attribute else self._differ
            if not compatible([*others, mine]):
                return False
        return True

    def _attribute(self, candidate: Candidate, name: str) -> DeviceAttribute | None:
        domain, _, identifier = name.partition("/")
        attributes = candidate.device.attributes
        return attributes.get(name) or (attributes.get(identifier) if domain == candidate.driver else None)

    def _match(self, values: list[DeviceAttribute | None]) -> bool:
        if self.lists:
            common = set(_elements(values[0]))
            for value in values:
                common &= set(_elements(value))
            return bool(common)
        return len(values) == 1 or (len(_scalars(values[-1])) == 1 and _scalars(values[-1]) == _scalars(values[0]))

    def _differ(self, values: list[DeviceAttribute | None]) -> bool:
        *others, mine = values
        if self.lists:
            return bool(_elements(mine)) and all(not set(_elements(mine)) & set(_elements(other)) for other in others)
        return not others or (len(_scalars(mine)) == 1 and all(_scalars(mine) != _scalars(other) for other in others))

    def _sets_hold(self, claim: int, request: int, attempt: Attempt) -> bool:
        """The CEL constraints for which this request is the last that they may cover."""
        wishes = self.wishes[claim]
        for constraint in self.claims[claim].spec.devices.constraints:
            if constraint.cel is None:
                continue
            last = max(
                (number for number, each in enumerate(wishes) if any(wish.is_covered_by(constraint) for wish in each)),
                default=-1,
            )
            devices = [
                bind_device(other.driver, other.device)
                for _, _, wish, other in attempt.of_claim(claim)
                if wish.is_covered_by(constraint)
            ]
            if last != request or not devices:
                continue
            try:
                if not compile_constraint(constraint.cel.expression).matches(devices):
                    return False
            except CelError as error:
                raise ModelError(str(error)) from error
        return True


def _elements(attribute: DeviceAttribute | None) -> list[tuple[str, object]]:
    if attribute is None:
        return []
    for kind, values in (("int", attribute.int_values), ("string", attribute.string_values)):
        if values:
            return [(kind, value) for value in values]
    return _scalars(attribute)


def _scalars(attribute: DeviceAttribute | None) -> list[tuple[str, object]]:
    if attribute is None:
        return []
    pairs = (("int", attribute.int_value), ("string", attribute.string_value), ("bool", attribute.bool_value))
    return [(kind, value) for kind, value in pairs if value is not None]
