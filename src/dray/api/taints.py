"""Taints and tolerations, of nodes and of devices: the same rules, with different effects."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, Protocol, TypeVar

from dray.api.meta import ApiStruct

NO_SCHEDULE: Final = "NoSchedule"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
NO_EXECUTE: Final = "NoExecute"
NONE: Final = "None"
"""Only for devices: the taint informs, and does nothing."""

FORBIDDING: Final = frozenset({NO_SCHEDULE, NO_EXECUTE})
"""The effects that keep new pods away. Unknown effects don't."""


class Taint(ApiStruct, frozen=True):
    """A taint of a node."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class Toleration(ApiStruct, frozen=True):
    """What a pod tolerates on its node."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class AnyTaint(Protocol):
    """`Taint` or `DeviceTaint`."""

    @property
    def key(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def effect(self) -> str: ...


class AnyToleration(Protocol):
    """`Toleration` or `DeviceToleration`."""

    @property
    def key(self) -> str: ...
    @property
    def operator(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def effect(self) -> str: ...


TaintT = TypeVar("TaintT", bound=AnyTaint)
TolerationT = TypeVar("TolerationT", bound=AnyToleration)


def tolerates(toleration: AnyToleration, taint: AnyTaint) -> bool:
    """Empty effect and key match all; the operator is Equal if it is empty, and an unknown one matches nothing."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case _:
            return False


def matching_tolerations(taint: AnyTaint, tolerations: Iterable[TolerationT]) -> list[TolerationT]:
    return [toleration for toleration in tolerations if tolerates(toleration, taint)]


def find_untolerated(
    taints: Iterable[TaintT], tolerations: Collection[AnyToleration], effects: Collection[str] = FORBIDDING
) -> TaintT | None:
    """The first taint with one of these effects that nothing tolerates."""
    for taint in taints:
        if taint.effect in effects and not any(tolerates(toleration, taint) for toleration in tolerations):
            return taint
    return None
