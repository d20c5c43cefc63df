"""Consumable capacity: how much of a device one allocation consumes, by the request and the device's policies.

Kubernetes calculates ranges with int64 (`Quantity.value`, which rounds fractions up), or in thousandths if the range is
exact there and the gate DRAFractionalCapacityRange is on. A number that doesn't fit stops the allocation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dray.api.devices import CapacityRequestPolicy, CapacityRequestPolicyRange, DeviceCapacity
from dray.api.quantities import Quantity

_MAX_INT64: Final = (1 << 63) - 1


class CapacityProblem(Exception):
    """A capacity that can't be calculated with; stops the allocation."""

    def __init__(self, capacity: str, problem: str) -> None:
        super().__init__(capacity, problem)
        self.capacity = capacity
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Need:
    """What one allocation consumes of a device, for each of its capacities."""

    consumed: dict[str, Quantity]
    """Goes into results as it is: nobody changes it."""
    fits: bool
    """Whether an otherwise unused device has that much, and the policies allow it."""
    amounts: tuple[tuple[str, int, int], ...]
    """(name, consumed, available), in nano units."""

    def fits_beside(self, used: Mapping[str, int]) -> bool:
        """Whether it still fits when so much of the device is consumed already."""
        for name, amount, limit in self.amounts:
            if amount + used.get(name, 0) > limit:
                return False
        return self.fits


def find_need(
    requested: Mapping[str, Quantity], capacity: Mapping[str, DeviceCapacity], *, fractional: bool
) -> Need | None:
    """What a request consumes of a device; None if it names a capacity that the device doesn't have.

    Capacities that aren't requested are consumed too: as much as the policy's default says, else all of it.
    Raises CapacityProblem; for that all capacities are looked at before anything else is decided.
    """
    if not requested.keys() <= capacity.keys():
        return None
    consumed: dict[str, Quantity] = {}
    for name, offered in capacity.items():
        amount = _consumed(name, requested.get(name), offered, fractional)
        if amount.sign < 0:
            raise CapacityProblem(name, "capacity value is negative")
        consumed[name] = amount
    allowed = all(
        not _violates(consumed[name], offered.request_policy, fractional) for name, offered in capacity.items()
    )
    amounts = tuple((name, consumed[name].nano, offered.value.nano) for name, offered in capacity.items())
    return Need(consumed, allowed and all(amount <= limit for _, amount, limit in amounts), amounts)


def _consumed(name: str, requested: Quantity | None, offered: DeviceCapacity, fractional: bool) -> Quantity:
    policy = offered.request_policy
    if requested is None:
        return policy.default if policy is not None and policy.default is not None else offered.value
    if policy is None:
        return requested
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _rounded_up(name, requested, policy.valid_range.min, policy.valid_range, fractional)
    return next((value for value in policy.valid_values if requested <= value), requested)


def _rounded_up(
    name: str, requested: Quantity, least: Quantity, allowed: CapacityRequestPolicyRange, fractional: bool
) -> Quantity:
    if requested < least:
        return least
    step = allowed.step
    if step is None:
        return requested
    if _in_thousandths(allowed, fractional):
        if not _is_milli(requested):
            raise CapacityProblem(name, f"request {requested} is not a representable milli value")
        rounded = _next_step(requested.milli_value, least.milli_value, step.milli_value)
        if rounded > _MAX_INT64:
            raise CapacityProblem(
                name, f"rounding request {requested} up to the next step passes the milli-value range"
            )
        if rounded % 1000 == 0:
            return Quantity.of(rounded // 1000, step.format)
        return Quantity.of(rounded, step.format, scale=-3)
    if requested.nano > _MAX_INT64 * 10**9:
        raise CapacityProblem(name, f"request {requested} cannot be represented: it exceeds the largest integer")
    rounded = _next_step(requested.value, least.value, step.value)
    if rounded > _MAX_INT64:
        raise CapacityProblem(name, f"rounding request {requested} up to the next step cannot be represented")
    return Quantity.of(rounded, step.format)


def _next_step(value: int, least: int, step: int) -> int:
    return least + -(-(value - least) // step) * step


def _violates(amount: Quantity, policy: CapacityRequestPolicy | None, fractional: bool) -> bool:
    if policy is None or (policy.default is not None and amount == policy.default):
        return False
    if (allowed := policy.valid_range) is not None:
        if allowed.max is not None and amount > allowed.max:
            return True
        if allowed.step is None or allowed.min is None:
            return False
        if _in_thousandths(allowed, fractional):
            if not _is_milli(amount):
                return True
            return (amount.milli_value - allowed.min.milli_value) % allowed.step.milli_value != 0
        return (amount.value - allowed.min.value) % allowed.step.value != 0
    return bool(policy.valid_values) and amount not in policy.valid_values


def _in_thousandths(allowed: CapacityRequestPolicyRange, fractional: bool) -> bool:
    parts = [part for part in (allowed.min, allowed.max, allowed.step) if part is not None]
    return fractional and all(map(_is_milli, parts)) and (allowed.step is None or allowed.step.milli_value >= 1)


def _is_milli(quantity: Quantity) -> bool:
    """Whether the number is exact in thousandths that fit an int64."""
    return quantity.nano == quantity.milli_value * 10**6
