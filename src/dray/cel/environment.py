"""What an expression may talk about: variables, types, functions, and what is known of the size of its input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from dray.cel.declarations import Function
from dray.cel.types import DYN, Type


@dataclass(frozen=True, eq=False, slots=True)
class Environment:
    """Made by `device_environment`, `devices_environment` or `generic_environment`."""

    name: Literal["device", "devices", "generic"]
    variables: Mapping[str, Type]
    functions: Mapping[str, Function]
    types: Mapping[str, Type]
    """Type names that may stand as values (`int`, `net.IP`)."""
    objects: Mapping[str, Mapping[str, Type]]
    """Object types: the types of their fields."""
    container: str = ""
    """Namespace that names are looked up in first."""
    attribute_type: Type = DYN
    """Static type of one attribute value of a device."""
    stored: bool = True
    consumable_capacity: bool = True
    list_type_attributes: bool = True


def device_environment(
    *, stored: bool = True, consumable_capacity: bool = True, list_type_attributes: bool = True
) -> Environment:
    """The environment of selectors and derived attributes: one variable, `device`."""
    raise NotImplementedError


def devices_environment(
    *, stored: bool = True, consumable_capacity: bool = True, list_type_attributes: bool = True
) -> Environment:
    """The environment of CEL constraints (KEP-5254): one variable, `devices`, a list."""
    raise NotImplementedError


def generic_environment(
    variables: Mapping[str, Type], functions: Mapping[str, Function] | None = None, container: str = ""
) -> Environment:
    """All libraries over variables (and extra functions) of one's own."""
    raise NotImplementedError
