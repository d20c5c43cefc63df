"""Who asks, and whether they may."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias


@dataclass(frozen=True, slots=True)
class UserInfo:
    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


ADMIN: Final = UserInfo("dray:admin", groups=("system:masters", "system:authenticated"))
"""The identity of components that call the registry in-process without one of their own."""


@dataclass(frozen=True, slots=True)
class Attributes:
    """What an authorizer decides on. For other than resource requests only `user`, `verb` and `path` are set."""

    user: UserInfo
    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field_selector: str = ""
    label_selector: str = ""
    path: str = ""

    @property
    def is_resource_request(self) -> bool:
        return bool(self.resource)


class Decision(NamedTuple):
    allowed: bool
    reason: str = ""


Authorizer: TypeAlias = Callable[[Attributes], Decision]


def allow_everything(attributes: Attributes) -> Decision:
    """For tests and in-process use, where nobody is kept out."""
    return Decision(True)
