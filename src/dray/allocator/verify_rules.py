"""What the checker holds allocations against, and how it reports that one breaks a rule."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from dray.api.devices import DeviceID
from dray.api.meta import ObjectKey


class Rule(StrEnum):
    """The value is the heading in messages."""

    # Of the claim alone
    REQUESTS = "requests"
    """Every request is answered, once, in order; nothing else is."""
    COUNT = "count"
    LIMIT = "limit of devices"
    FEATURES = "feature gate"
    CLASS = "device class"
    ADMIN_ACCESS = "admin access"
    TOLERATIONS = "tolerations"
    CONFIG = "config"
    # Of all claims together
    IN_USE = "in use twice"
    SHARES = "shares"
    """A share of a device that can be shared has an ID of its own, and no other device has one."""
    CAPACITY = "capacity"
    COUNTERS = "counters"
    COMPATIBILITY = "compatibility groups"
    # Of the claim and the slices as they are
    NODE = "node"
    DEVICE = "device"
    """It is in the newest generation of a pool that is complete and valid."""
    REACH = "reach"
    SELECTOR = "selector"
    TAINT = "taint"
    ALL = "all devices"
    CONSTRAINT = "constraint"
    NODE_SELECTOR = "node selector"
    BINDING = "binding conditions"
    NODE_OPERATIONS = "node operations"

    @property
    def is_lasting(self) -> bool:
        """Whether it holds as long as the allocation does. Others can be broken by a driver that publishes anew."""
        return self not in _OF_THE_MOMENT


_OF_THE_MOMENT = frozenset(
    {
        Rule.CLASS, Rule.CONFIG, Rule.NODE, Rule.DEVICE, Rule.REACH, Rule.SELECTOR, Rule.TAINT, Rule.ALL,
        Rule.CONSTRAINT, Rule.NODE_SELECTOR, Rule.BINDING, Rule.NODE_OPERATIONS, Rule.CAPACITY, Rule.COUNTERS,
        Rule.COMPATIBILITY, Rule.SHARES,
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Violation:
    """An allocation breaks a rule. `request` and `device` are there if it can be said which."""

    rule: Rule
    claim: ObjectKey
    detail: str
    request: str = ""
    device: DeviceID | None = None

    def __str__(self) -> str:
        where = [f"claim {self.claim}"]
        if self.request:
            where.append(f"request {self.request}")
        if self.device is not None:
            where.append(f"device {self.device}")
        return f"{', '.join(where)}: {self.rule}: {self.detail}"
