"""For the checker: how much of a device's capacity one allocation takes, by the definition, in exact arithmetic."""

from __future__ import annotations

from collections.abc import Mapping

from dray.api.devices import CapacityRequestPolicy, CapacityRequestPolicyRange, Device, DeviceCapacity
from dray.api.quantities import Quantity

_ONE = 10**9
_MILLI = 10**6


def find_consumption(requested: Mapping[str, Quantity], device: Device, *, fractional: bool) -> dict[str, int] | str:
    """Nano units by capacity, or why an unused device doesn't do for the request."""
    for name in requested:
        if name not in device.capacity:
            return f"the device has no capacity {name}"
    consumed: dict[str, int] = {}
    for name, offered in device.capacity.items():
        wanted = requested.get(name)
        amount = _amount(None if wanted is None else wanted.nano, offered, fractional)
        if amount < 0:
            return f"{name} would be negative"
        if not _is_allowed(amount, offered.request_policy, fractional):
            return f"the policy of {name} doesn't allow to request {wanted}"
        if amount > offered.value.nano:
            return f"{name}: {format_nano(amount)} requested, the device has {offered.value}"
        consumed[name] = amount
    return consumed


def _amount(wanted: int | None, offered: DeviceCapacity, fractional: bool) -> int:
    policy = offered.request_policy
    if wanted is None:
        return policy.default.nano if policy and policy.default is not None else offered.value.nano
    if policy is None:
        return wanted
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _round_up(wanted, policy.valid_range, fractional)
    return min((each.nano for each in policy.valid_values if each.nano >= wanted), default=wanted)


def _round_up(wanted: int, valid: CapacityRequestPolicyRange, fractional: bool) -> int:
    least = valid.min.nano if valid.min is not None else 0
    if wanted < least:
        return least
    if valid.step is None:
        return wanted
    unit = _unit(valid, fractional)
    start, step = _ceil(least, unit), _ceil(valid.step.nano, unit)
    steps = _ceil(_ceil(wanted, unit) - start, step)
    return (start + steps * step) * unit


def _is_allowed(amount: int, policy: CapacityRequestPolicy | None, fractional: bool) -> bool:
    if policy is None or (policy.default is not None and policy.default.nano == amount):
        return True
    valid = policy.valid_range
    if valid is not None:
        if valid.max is not None and amount > valid.max.nano:
            return False
        if valid.step is not None and valid.min is not None:
            unit = _unit(valid, fractional)
            return (_ceil(amount, unit) - _ceil(valid.min.nano, unit)) % _ceil(valid.step.nano, unit) == 0
        return True
    return not policy.valid_values or any(each.nano == amount for each in policy.valid_values)


def _unit(valid: CapacityRequestPolicyRange, fractional: bool) -> int:
    """Thousandths where the whole range is made of them, else ones."""
    bounds = [each.nano for each in (valid.min, valid.max, valid.step) if each is not None]
    exact = all(each % _MILLI == 0 and abs(each) // _MILLI < 1 << 63 for each in bounds)
    return _MILLI if fractional and exact and valid.step else _ONE


def _ceil(number: int, unit: int) -> int:
    return -(-number // unit)


def format_nano(amount: int) -> str:
    return str(Quantity.of(amount, scale=-9))
