"""CEL expressions in objects: they must compile, give the right type, and not cost too much.

Only expressions that are new are looked at. What is stored was accepted once, and stays so.
"""

from __future__ import annotations

from typing import Final

from dray.api.features import FeatureGates
from dray.validation.fields import Errors, Path

MAX_EXPRESSION_BYTES: Final = 10 * 1024
MAX_COST: Final = 1_000_000
"""Of one expression, as estimated beforehand."""
MAX_DERIVED_COST: Final = 1_000_000
"""Of all derived attributes of a claim together."""

TOO_COMPLEX: Final = "too complex, exceeds cost limit"


def check_selector(text: str, path: Path, errors: Errors, gates: FeatureGates) -> None:
    """An expression over one `device` that chooses it or not."""


def check_derived_attribute(text: str, path: Path, errors: Errors, gates: FeatureGates) -> int:
    """An expression over one `device` that gives an attribute. Returns its cost, for the limit of the whole claim."""
    return 0


def check_constraint(text: str, path: Path, errors: Errors, gates: FeatureGates) -> None:
    """An expression over the list `devices` (KEP-5254)."""
