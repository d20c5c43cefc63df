"""Why claims don't fit, as values: what is counted on the way from all devices to those that could be had.

Explanation
└── GroupReason          nodes for which the story is the same, those closest to a fit first
    ├── RequestCount     how many devices are left after each stage, per request (or alternative)
    ├── ConstraintGap    the best that could be had under a constraint, if that is what fails
    └── error            what stopped the allocation, if it didn't get that far
└── Change               a single change after which it would fit
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import NamedTuple

from dray.allocator.errors import AllocationError
from dray.api.devices import PoolID
from dray.api.meta import ObjectKey
from dray.cel.suggestions import Suggestion


class Stage(IntEnum):
    """What a device must get past, in this order."""

    SEEN = 0
    CLASS = 1
    SELECTORS = 2
    ENABLED = 3
    """It needs nothing that is turned off, or that the node can't do."""
    CAPACITY = 4
    """Unused, it would have enough capacity."""
    UNTAINTED = 5
    FREE = 6
    ROOM = 7
    """Counters and shared capacity leave room for it."""


@dataclass(frozen=True, slots=True)
class Loss:
    """So many devices don't get past a stage, because of this."""

    cause: str
    count: int
    claim: ObjectKey | None = None
    """Who holds them, if somebody does."""


@dataclass(frozen=True, slots=True)
class StageCount:
    stage: Stage
    left: int
    losses: tuple[Loss, ...] = ()
    expression: str = ""
    """The selector, if it is one: each has a stage of its own."""
    selector: int = -1
    rejects: int = 0
    """So many devices of the class don't pass the selector, whatever the others say."""
    hints: tuple[Suggestion, ...] = ()
    """Names that the selector reads and no device has."""


@dataclass(frozen=True, slots=True)
class RequestCount:
    """The way from all devices of a node to those that the request could have, if it were alone."""

    claim: ObjectKey
    request: str
    device_class: str
    wanted: int | None
    """None: all that match."""
    stages: tuple[StageCount, ...]

    @property
    def place(self) -> tuple[ObjectKey, str]:
        """The claim and the request; alternatives of one request have it in common."""
        return self.claim, self.request.partition("/")[0]

    @property
    def available(self) -> int:
        return self.stages[-1].left

    @property
    def matching(self) -> int:
        """Devices that it could ever have."""
        return max((each.left for each in self.stages if each.stage == Stage.CAPACITY), default=0)

    @property
    def is_short(self) -> bool:
        """`All` wants every device that matches, and at least one."""
        return self.available < (max(self.matching, 1) if self.wanted is None else self.wanted)

    @property
    def bottleneck(self) -> StageCount:
        """The stage that leaves too few."""
        enough = max(self.matching, 1) if self.wanted is None else self.wanted
        return next((each for each in self.stages if each.left < enough), self.stages[-1])


class Filling(NamedTuple):
    """What a request could get of devices with one value of an attribute."""

    request: str
    available: int
    wanted: int


@dataclass(frozen=True, slots=True)
class ValueCount:
    value: str
    fillings: tuple[Filling, ...]


@dataclass(frozen=True, slots=True)
class NearMiss:
    """The set of devices that comes closest to an expression, and the part of it that doesn't hold."""

    devices: tuple[str, ...]
    condition: str
    miss: str = ""
    """For a comparison of numbers: `4 instead of 3`."""


@dataclass(frozen=True, slots=True)
class ConstraintGap:
    """The best that the available devices give under a constraint."""

    claim: ObjectKey
    constraint: int
    kind: str
    """`match`, `distinct` or `cel`."""
    text: str
    """The attribute, or the expression."""
    requests: tuple[str, ...]
    """The requests it is about, if they aren't all."""
    wanted: int
    best: int
    """So many devices satisfy it together; for an expression, so many sets were tried in vain."""
    values: tuple[ValueCount, ...] = ()
    """What each value of the attribute gives, the best first."""
    without: int = 0
    """Devices that don't have the attribute."""
    closest: NearMiss | None = None
    hints: tuple[Suggestion, ...] = ()


@dataclass(frozen=True, slots=True)
class PoolProblem:
    """A pool that isn't used, so that its devices weren't counted."""

    pool: PoolID
    reason: str


class Obstacle(IntEnum):
    """What stands in the way; the larger, the closer to a fit."""

    ERROR = 0
    REQUEST = 1
    """A request can't be satisfied, even if it were alone."""
    TOGETHER = 2
    """Each request could be satisfied, but not all of them."""
    CONSTRAINT = 3


@dataclass(frozen=True, slots=True)
class GroupReason:
    nodes: tuple[str, ...]
    obstacle: Obstacle
    requests: tuple[RequestCount, ...] = ()
    gap: ConstraintGap | None = None
    error: AllocationError | None = None
    pools: tuple[PoolProblem, ...] = ()
    detail: str = ""
    """What the requests compete for, or what the claim may have meant."""

    @property
    def blocked(self) -> tuple[RequestCount, ...]:
        """The requests that can't be satisfied: each has too few devices in every alternative."""
        fine = {each.place for each in self.requests if not each.is_short}
        return tuple(each for each in self.requests if each.place not in fine)

    @property
    def feasible(self) -> tuple[RequestCount, ...]:
        """Per request the first alternative that has enough devices."""
        found: dict[tuple[ObjectKey, str], RequestCount] = {}
        for each in self.requests:
            if not each.is_short:
                found.setdefault(each.place, each)
        return tuple(found.values())


class ChangeKind(StrEnum):
    """From the smallest change to the largest."""

    RENAME = "rename"
    COUNT = "count"
    WAIT = "wait"
    TOLERATE = "tolerate"
    CAPACITY = "capacity"
    SELECTOR = "selector"
    CONSTRAINT = "constraint"


@dataclass(frozen=True, slots=True)
class Change:
    """After this, and nothing else, the claims would fit."""

    kind: ChangeKind
    text: str
    """Completes the sentence "It would fit ..."."""
    nodes: int
    """On so many nodes."""
    example: str
    """One of them."""
    may_be_more: bool = False
    """Whether there are nodes that weren't asked."""
    claims: tuple[ObjectKey, ...] = ()
    """Whom to wait for."""


@dataclass(frozen=True, slots=True)
class Explanation:
    claims: tuple[ObjectKey, ...]
    nodes: int
    """How many nodes were looked at."""
    fitting: int
    """On how many of them the claims fit."""
    groups: tuple[GroupReason, ...]
    changes: tuple[Change, ...]

    @property
    def fits(self) -> bool:
        return self.fitting > 0
