"""Attributes of devices: names, values, how many. Handwritten rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from dray.api.devices import DeviceAttribute
from dray.api.names import qualified_name_problems, truncate_key
from dray.api.problems import INVALID
from dray.api.versions import version_problems
from dray.validation.fields import Errors, Path, byte_length, invalid, mark_covered, too_long
from dray.validation.names import check_qualified
from dray.validation.rendering import internal_form

MAX_VALUES: Final = 48
"""In all attributes of a device; each item of a list counts."""
MAX_TEXT: Final = 64

SHOWN_KEY: Final = 63 + 1 + 32
"""Longer names of attributes and capacities are shortened in paths."""

_ALWAYS_SHORT: Final = MAX_TEXT // 4
"""So many characters fit, whatever they are."""


UnionFields: TypeAlias = tuple[
    int | None,
    bool | None,
    str | None,
    str | None,
    tuple[int, ...] | None,
    tuple[bool, ...] | None,
    tuple[str, ...] | None,
    tuple[str, ...] | None,
]


def union_fields(attribute: DeviceAttribute) -> UnionFields:
    """All eight fields of the union; a good attribute has exactly one that isn't None."""
    return (
        attribute.int_value,
        attribute.bool_value,
        attribute.string_value,
        attribute.version_value,
        attribute.int_values,
        attribute.bool_values,
        attribute.string_values,
        attribute.version_values,
    )


def has_list(attribute: DeviceAttribute) -> bool:
    return not (
        attribute.int_values is None
        and attribute.bool_values is None
        and attribute.string_values is None
        and attribute.version_values is None
    )


def check_attributes(attributes: Mapping[str, DeviceAttribute], path: Path, errors: Errors) -> None:
    """`path` is that of the device. Most of the work for a slice is done in this loop."""
    values = len(attributes)
    for name, attribute in attributes.items():
        if qualified_name_problems(name):
            check_qualified(name, path.child("attributes"), errors)
        fields = union_fields(attribute)
        if fields.count(None) == 7:
            number, flag, text, version = fields[:4]
            if text is not None:
                if len(text) <= _ALWAYS_SHORT or byte_length(text) <= MAX_TEXT:
                    continue
            elif number is not None or flag is not None or (version is not None and not version_problems(version)):
                continue
        values += _count_values(attribute) - 1
        _report(attribute, path.child("attributes").key(truncate_key(name, SHOWN_KEY)), errors)
    if values > MAX_VALUES:
        detail = f"the total number of attribute values must not exceed {MAX_VALUES}"
        errors.append(invalid(path, values, detail))


def _count_values(attribute: DeviceAttribute) -> int:
    """A list counts by its items, anything else as one."""
    lists = (attribute.int_values, attribute.bool_values, attribute.string_values, attribute.version_values)
    return sum(len(items) for items in lists if items) or 1


def _report(attribute: DeviceAttribute, path: Path, errors: Errors) -> None:
    if attribute.string_value is not None and byte_length(attribute.string_value) > MAX_TEXT:
        errors.append(too_long(path.child("string"), MAX_TEXT))
    if attribute.version_value is not None:
        _report_version(attribute.version_value, path.child("version"), errors)
    for name, items in (
        ("bools", attribute.bool_values),
        ("ints", attribute.int_values),
        ("strings", attribute.string_values),
        ("versions", attribute.version_values),
    ):
        if items is not None and not items:
            errors.append(invalid(path.child(name), [], "must not be empty if specified"))
    for position, text in enumerate(attribute.string_values or ()):
        if byte_length(text) > MAX_TEXT:
            place = path.child("strings").index(position)
            errors += mark_covered([too_long(place, MAX_TEXT, origin="maxBytes")])
    for position, version in enumerate(attribute.version_values or ()):
        _report_version(version, path.child("versions").index(position), errors)
    fields = union_fields(attribute)
    if fields.count(None) != len(fields) - 1:
        value = "" if fields.count(None) == len(fields) else internal_form(attribute)
        errors += mark_covered([invalid(path, value, "exactly one value must be specified", origin="union")])


def _report_version(version: str, path: Path, errors: Errors) -> None:
    for problem in version_problems(version):
        if problem.type == INVALID:
            errors.append(invalid(path, version, problem.detail))
        else:
            errors.append(too_long(path, MAX_TEXT))
