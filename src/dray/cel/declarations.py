"""Functions and their overloads, as data. Each library is a table of lines in `declarations_<library>.py`."""

from __future__ import annotations

from dataclasses import dataclass

from dray.cel.types import Type


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature. The receiver of a member call is the first parameter."""

    id: str
    member: bool
    parameters: tuple[Type, ...]
    result: Type
    type_parameters: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Function:
    name: str
    overloads: tuple[Overload, ...]
