"""CEL expressions in objects: they must compile, give the right type, and not cost too much.

Only expressions that are new are looked at. What is stored was accepted once, and stays so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dray.api.features import FeatureGates
from dray.cel.errors import CompileError
from dray.cel.program import Program, compile_constraint, compile_derived, compile_selector
from dray.validation.fields import Errors, Path, byte_length, forbidden, internal, invalid, required, too_long

MAX_EXPRESSION_BYTES: Final = 10 * 1024
MAX_COST: Final = 1_000_000
"""Of one expression, as estimated beforehand."""
MAX_DERIVED_COST: Final = 1_000_000
"""Of all derived attributes of a claim together."""


def check_selector(text: str, path: Path, errors: Errors, gates: FeatureGates) -> None:
    """An expression over one `device` that chooses it or not."""
    _check(text, path, errors, lambda: compile_selector(text, stored=False, gates=gates))


def check_derived_attribute(text: str, path: Path, errors: Errors, gates: FeatureGates) -> int:
    """An expression over one `device` that gives an attribute. Returns its cost, for the limit of the whole claim."""
    return _check(text, path, errors, lambda: compile_derived(text, stored=False, gates=gates))


def check_constraint(text: str, path: Path, errors: Errors, gates: FeatureGates) -> None:
    """An expression over the list `devices` (KEP-5254)."""
    if not text:
        errors.append(required(path))
        return
    _check(text, path, errors, lambda: compile_constraint(text, stored=False, gates=gates))


def _check(text: str, path: Path, errors: Errors, compile_text: Callable[[], Program]) -> int:
    """The estimated cost; 0 if there is no program."""
    if byte_length(text) > MAX_EXPRESSION_BYTES:
        errors.append(too_long(path, MAX_EXPRESSION_BYTES))
        return 0
    try:
        cost = compile_text().max_cost_estimate
    except CompileError as error:
        detail = _describe(error)
        errors.append(internal(path, detail) if error.kind == "internal" else invalid(path, text, detail))
        return 0
    if cost > MAX_COST:
        errors.append(forbidden(path, "too complex, exceeds cost limit"))
    return cost


def _describe(error: CompileError) -> str:
    """The text of cel-go, which points at the place with dots."""
    if error.position is None or error.message.startswith("must evaluate to"):
        return error.message  # a result of the wrong type is no failure to compile for Kubernetes
    source = error.text.split("\n")[error.line - 1].replace("\t", " ")
    column = error.column - 1
    dots = "".join("." if character.isascii() else "．" for character in source[:column])
    mark = "^" if source[column : column + 1].isascii() else "＾"
    return (
        f"compilation failed: ERROR: <input>:{error.line}:{error.column}: {error.message}\n | {source}\n | {dots}{mark}"
    )
