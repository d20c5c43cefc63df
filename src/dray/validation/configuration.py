"""Opaque configuration for drivers, and the raw JSON that carries it."""

from __future__ import annotations

from typing import Final

import msgspec

from dray.api.claims import OpaqueDeviceConfiguration
from dray.api.json_syntax import find_number_out_of_range
from dray.api.meta import NO_RAW
from dray.validation.fields import Errors, Path, invalid, required, too_long
from dray.validation.names import check_driver

MAX_RAW_BYTES: Final = 10 * 1024


def check_configuration(
    opaque: OpaqueDeviceConfiguration | None, path: Path, errors: Errors, *, stored: bool = False
) -> None:
    """One entry of a `config` list. What is already stored may be larger than what is accepted today."""
    if opaque is None:
        errors.append(required(path.child("opaque")))
        return
    place = path.child("opaque")
    check_driver(opaque.driver, place.child("driver"), errors, covered=True)
    check_raw(opaque.parameters, place.child("parameters"), errors, stored=stored)


def check_raw(raw: msgspec.Raw, path: Path, errors: Errors, *, stored: bool = False) -> None:
    """Raw JSON must be an object. Its size counts as sent, white space included."""
    data = bytes(raw)
    if not data or raw == NO_RAW:
        errors.append(required(path))
    elif not stored and len(data) > MAX_RAW_BYTES:
        errors.append(too_long(path, MAX_RAW_BYTES))
    elif (number := find_number_out_of_range(data.decode("utf-8", "replace"))) is not None:
        reason = f"json: cannot unmarshal number {number} into Go value of type float64"
        errors.append(invalid(path, "<value omitted>", f"error parsing data as JSON: {reason}"))
    elif not data.lstrip().startswith(b"{"):
        errors.append(invalid(path, "<value omitted>", "must be a valid JSON object"))
