"""What a request is about, and who makes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from dray.apiserver.records import Record
from dray.apiserver.resources import Row
from dray.apiserver.users import ADMIN, UserInfo


class Target(NamedTuple):
    row: Row
    version: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> str:
        return self.row.key(self.namespace, self.name)

    @property
    def api_version(self) -> str:
        return self.row.api_version(self.version)


@dataclass(frozen=True, slots=True)
class Caller:
    """`agent` names the field manager of writes that don't name one."""

    user: UserInfo = ADMIN
    agent: str = "dray"
    tracked: bool = True
    """Whether `managedFields` begins with this caller's writes. If not, an object that nobody else wrote has none;
    the first apply then counts all that is there as set before it."""


class Written(NamedTuple):
    record: Record
    warnings: list[str]
    created: bool = False
