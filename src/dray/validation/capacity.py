"""Capacity that is shared: which amounts may be requested."""

from __future__ import annotations

from typing import Final

from dray.api.devices import CapacityRequestPolicy, CapacityRequestPolicyRange, DeviceCapacity
from dray.api.features import FeatureGates
from dray.api.quantities import Quantity
from dray.validation.fields import Errors, Path, forbidden, invalid, required
from dray.validation.lists import check_unique, is_too_many

MAX_VALID_VALUES: Final = 10

_NANOS: Final = 10**9
_MAX_INT64: Final = 2**63 - 1


def check_capacity(
    capacity: DeviceCapacity, path: Path, errors: Errors, gates: FeatureGates, *, shareable: bool
) -> None:
    policy = capacity.request_policy
    if policy is None:
        return
    place = path.child("requestPolicy")
    if not shareable:
        errors.append(forbidden(place, "allowMultipleAllocations must be true"))
    elif policy.valid_values and policy.valid_range is not None:
        detail = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
        errors.append(forbidden(place, detail))
    elif policy.valid_values:
        if policy.default is None:
            errors.append(required(place.child("default"), "required when validValues is defined"))
        else:
            _check_values(policy.default, capacity.value, policy, place.child("validValues"), errors, gates)
    elif policy.valid_range is not None:
        if policy.default is None:
            errors.append(required(place.child("default"), "required when validRange is defined"))
        else:
            _check_range(policy.default, capacity.value, policy.valid_range, place.child("validRange"), errors, gates)


def _check_values(
    default: Quantity, total: Quantity, policy: CapacityRequestPolicy, path: Path, errors: Errors, gates: FeatureGates
) -> None:
    values = policy.valid_values
    for position in range(1, len(values)):
        if values[position - 1] > values[position]:
            detail = "values must be sorted in ascending order"
            errors.append(invalid(path.index(position), str(values[position]), detail))
    found_default = False
    if not is_too_many(values, MAX_VALID_VALUES, path, errors):
        for position, value in enumerate(values):
            if value > total:
                detail = f"option is larger than capacity value: {total}"
                errors.append(invalid(path.index(position), str(value), detail))
            found_default = found_default or value == default
        exact = "DRAFractionalCapacityRange" in gates
        check_unique((f"{value.as_decimal():f}" if exact else str(value.value) for value in values), path, errors)
    if not found_default:
        errors.append(invalid(path, str(default), "default value is not valid according to the requestPolicy"))


def _check_range(
    default: Quantity,
    total: Quantity,
    limits: CapacityRequestPolicyRange,
    path: Path,
    errors: Errors,
    gates: FeatureGates,
) -> None:
    low, high, step = limits.min, limits.max, limits.step
    if low is None:
        errors.append(required(path.child("min"), "required when validRange is defined"))
        return
    if low > total:
        errors.append(invalid(path.child("min"), str(low), f"min is larger than capacity value: {total}"))
    if default < low:
        errors.append(invalid(path.child("default"), str(default), f"default is less than min: {low}"))
    if high is not None:
        if low > high:
            errors.append(invalid(path.child("max"), str(low), f"min is larger than max: {high}"))
        if high > total:
            errors.append(invalid(path.child("max"), str(high), f"max is larger than capacity value: {total}"))
        if default > high:
            errors.append(invalid(path.child("default"), str(default), f"default is more than max: {high}"))
    amounts = {"default": default, "min": low, "max": high, "step": step}
    # Whole numbers are computed with as int64, anything finer in thousandths.
    in_milli = "DRAFractionalCapacityRange" in gates and any(
        amount is not None and amount.nano % _NANOS for amount in amounts.values()
    )
    if in_milli and not _are_thousandths(amounts, path, errors):
        return
    if step is None:
        return
    place = path.child("step")
    if step.sign <= 0:
        errors.append(invalid(place, str(step), "must be greater than zero"))
        return
    first = low + step
    if first > total:
        errors.append(invalid(place, str(step), f"one step {first} is larger than capacity value: {total}"))
    if in_milli or _are_int64(amounts, path, errors):
        for amount in (default, high):
            if amount is not None and not _is_step(amount, low, step, in_milli):
                detail = f"value is not a multiple of a given step ({step}) from ({low})"
                errors.append(invalid(place, str(amount), detail))


def _are_thousandths(amounts: dict[str, Quantity | None], path: Path, errors: Errors) -> bool:
    fine = True
    for name, amount in amounts.items():
        if amount is not None and amount.nano != amount.milli_value * (_NANOS // 1000):
            errors.append(invalid(path.child(name), str(amount), "value cannot be represented as a milli value"))
            fine = False
    return fine


def _are_int64(amounts: dict[str, Quantity | None], path: Path, errors: Errors) -> bool:
    fine = True
    for name, amount in amounts.items():
        if amount is None:
            continue
        if amount.sign < 0:
            errors.append(invalid(path.child(name), str(amount), "must be greater than or equal to 0"))
            fine = False
        elif amount.nano > _MAX_INT64 * _NANOS:
            errors.append(invalid(path.child(name), str(amount), f"must not be larger than {_MAX_INT64}"))
            fine = False
    return fine


def _is_step(amount: Quantity, low: Quantity, step: Quantity, in_milli: bool) -> bool:
    if in_milli:
        return (amount.milli_value - low.milli_value) % step.milli_value == 0
    return (amount.value - low.value) % step.value == 0
