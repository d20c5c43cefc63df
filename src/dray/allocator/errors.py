"""Why an allocation had to stop. That a claim doesn't fit is no error: then the answer is None.

AllocationError
├── RequestError            the claim can't be handled at all
│   ├── FeatureDisabled         it uses a feature that is turned off
│   ├── UnsupportedRequest      it uses something that this version doesn't know
│   ├── ClassMissing            its device class doesn't exist
│   ├── TooManyDevices          it asks for more devices than one claim can hold
│   ├── PoolUnusable            it asks for all devices, but a pool is being updated or is invalid
│   └── ConstraintRejectsAll    it asks for all devices, but a constraint doesn't accept one of them
├── ExpressionError         an expression can't be compiled or evaluated
│   ├── SelectorFailed          ... a selector of a class or request
│   ├── DerivedAttributeFailed  ... a derived attribute
│   └── ConstraintFailed        ... a constraint over a set of devices
├── CapacityUnusable        a capacity request or a published capacity can't be calculated with
├── NodeSelectionFailed     a slice or device can't be matched against the node
├── InvalidPools            nothing fits, and pools with errors were left out; other nodes may do
└── DeadlineExceeded        the search was stopped by its time limit
"""

from __future__ import annotations

from dray.api.devices import DeviceID, PoolID
from dray.api.meta import ObjectKey

OPTIONAL_CHAINING_HINT = (
    ". consider using CEL optional chaining (.? followed by orValue()) "
    "or guarding the check with has() for optional fields"
)


class AllocationError(Exception):
    """Allocation stopped. `on_node`: only this node is affected, others may be tried."""

    on_node = False


class RequestError(AllocationError):
    """A problem of one claim, and of one request in it if `request` isn't empty."""

    def __init__(self, claim: ObjectKey, request: str, problem: str) -> None:
        super().__init__(claim, request, problem)
        self.claim = claim
        self.request = request
        self.problem = problem

    def __str__(self) -> str:
        where = f"claim {self.claim}" + (f", request {self.request}" if self.request else "")
        return f"{where}: {self.problem}"


class FeatureDisabled(RequestError):
    def __init__(self, claim: ObjectKey, request: str, use: str, gate: str) -> None:
        super().__init__(claim, request, f"{use}, but the {gate} feature is disabled")
        self.gate = gate


class UnsupportedRequest(RequestError):
    pass


class ClassMissing(RequestError):
    def __init__(self, claim: ObjectKey, request: str, class_name: str) -> None:
        super().__init__(claim, request, f"could not retrieve device class {class_name}: not found")
        self.class_name = class_name


class TooManyDevices(RequestError):
    def __init__(self, claim: ObjectKey, count: int, limit: int) -> None:
        super().__init__(claim, "", f"number of requested devices {count} exceeds the claim limit of {limit}")
        self.count = count
        self.limit = limit


class PoolUnusable(RequestError):
    def __init__(self, claim: ObjectKey, request: str, pool: PoolID, reason: str) -> None:
        """`reason` is empty for a pool that is being updated, else it says why the pool is invalid."""
        state = f"currently invalid: {reason}" if reason else "currently being updated"
        super().__init__(claim, request, f"asks for all devices, but resource pool {pool} is {state}")
        self.pool = pool
        self.reason = reason


class ConstraintRejectsAll(RequestError):
    def __init__(self, claim: ObjectKey, request: str, device: DeviceID, constraint: int) -> None:
        problem = f"cannot add device {device} because a claim constraint would not be satisfied"
        super().__init__(claim, request, f"{problem} (constraint #{constraint})")
        self.device = device
        self.constraint = constraint


class ExpressionError(AllocationError):
    """`cause` is the error of the CEL package: a CompileError or an EvaluationError."""

    def __init__(self, where: str, cause: Exception) -> None:
        super().__init__(where, cause)
        self.where = where
        self.cause = cause

    def __str__(self) -> str:
        text = str(self.cause)
        hint = OPTIONAL_CHAINING_HINT if text.startswith("no such key") and OPTIONAL_CHAINING_HINT not in text else ""
        return f"{self.where}: {text}{hint}"


class SelectorFailed(ExpressionError):
    """`class_name` is empty for a selector of the claim's request; `device` is None if it doesn't compile."""

    def __init__(
        self, claim: ObjectKey, request: str, class_name: str, index: int, device: DeviceID | None, cause: Exception
    ) -> None:
        owner = f"class {class_name}" if class_name else f"claim {claim}"
        if device is None:
            where = f"{owner}: selector #{index}: CEL compile error"
        else:
            where = f"{owner}: selector #{index} on device {device}: CEL runtime error"
        super().__init__(where, cause)
        self.claim = claim
        self.request = request
        self.class_name = class_name
        self.index = index
        self.device = device


class DerivedAttributeFailed(ExpressionError):
    def __init__(
        self, claim: ObjectKey, request: str, attribute: str, device: DeviceID | None, cause: Exception
    ) -> None:
        what = "compile" if device is None else f"on device {device}, evaluate"
        super().__init__(f"claim {claim}, request {request}: {what} derived attribute {attribute}", cause)
        self.claim = claim
        self.request = request
        self.attribute = attribute
        self.device = device


class ConstraintFailed(ExpressionError):
    """`devices` is empty if the expression doesn't compile."""

    def __init__(self, claim: ObjectKey, constraint: int, devices: tuple[DeviceID, ...], cause: Exception) -> None:
        where = f"claim {claim}, constraint #{constraint}"
        if devices:
            where += f" on devices {', '.join(map(str, devices))}: CEL runtime error"
        else:
            where += ": CEL compile error"
        super().__init__(where, cause)
        self.claim = claim
        self.constraint = constraint
        self.devices = devices


class CapacityUnusable(AllocationError):
    def __init__(self, claim: ObjectKey, request: str, device: DeviceID, capacity: str, problem: str) -> None:
        super().__init__(claim, request, device, capacity, problem)
        self.claim = claim
        self.request = request
        self.device = device
        self.capacity = capacity
        self.problem = problem

    def __str__(self) -> str:
        return (
            f"claim {self.claim}, request {self.request}: checking capacity for device {self.device}: "
            f'capacity "{self.capacity}": {self.problem}'
        )


class NodeSelectionFailed(AllocationError):
    """`where` names the slice or device; `problem` says what is wrong with its node selector."""

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(where, problem)
        self.where = where
        self.problem = problem

    def __str__(self) -> str:
        return f"failed to perform node selection for {self.where}: {self.problem}"


class InvalidPools(AllocationError):
    on_node = True

    def __init__(self, pools: tuple[tuple[PoolID, str], ...]) -> None:
        """Each pool with the reason why it is invalid."""
        super().__init__(pools)
        self.pools = pools

    def __str__(self) -> str:
        listed = "; ".join(f"{pool}: {reason}" for pool, reason in self.pools)
        return f"invalid resource pools were encountered: {listed}"


class DeadlineExceeded(AllocationError):
    def __init__(self, steps: int) -> None:
        """`steps`: how many devices had been tried when time was up."""
        super().__init__(steps)
        self.steps = steps

    def __str__(self) -> str:
        return f"the search for devices was stopped by its time limit after {self.steps} steps"
