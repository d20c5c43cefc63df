"""Taints and tolerations of devices."""

from __future__ import annotations

from typing import Final

from dray.api.claims import DeviceToleration
from dray.api.devices import DeviceTaint
from dray.validation.fields import Errors, Path, invalid, mark_covered, not_supported, required
from dray.validation.names import check_label_key, check_label_value

TAINT_EFFECTS: Final = ("NoExecute", "NoSchedule", "None")
TOLERATION_OPERATORS: Final = ("Equal", "Exists")


def check_taint(taint: DeviceTaint, path: Path, errors: Errors, *, old_effect: str | None = None) -> None:
    """An effect that is stored already stays valid, whatever it is."""
    check_label_key(taint.key, path.child("key"), errors)
    if taint.value:
        check_label_value(taint.value, path.child("value"), errors)
    if old_effect is None or old_effect != taint.effect:
        if not taint.effect:
            errors += mark_covered([required(path.child("effect"))])
        elif taint.effect not in TAINT_EFFECTS:
            errors += mark_covered([not_supported(path.child("effect"), taint.effect, TAINT_EFFECTS)])


def check_tolerations(tolerations: tuple[DeviceToleration, ...], path: Path, errors: Errors) -> None:
    for position, toleration in enumerate(tolerations):
        _check_toleration(toleration, path.index(position), errors)


def _check_toleration(toleration: DeviceToleration, path: Path, errors: Errors) -> None:
    if toleration.key:
        check_label_key(toleration.key, path.child("key"), errors, covered=True)
    match toleration.operator:
        case "Exists":
            if toleration.value:
                errors.append(invalid(path.child("value"), toleration.value, "must be empty for operator `Exists`"))
        case "Equal":
            check_label_value(toleration.value, path.child("value"), errors)
        case "":
            errors += mark_covered([required(path.child("operator"))])
        case operator:
            errors += mark_covered([not_supported(path.child("operator"), operator, TOLERATION_OPERATORS)])
    if toleration.effect and toleration.effect not in TAINT_EFFECTS:
        errors += mark_covered([not_supported(path.child("effect"), toleration.effect, TAINT_EFFECTS)])
