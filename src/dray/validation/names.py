"""Names in fields: the checks of `dray.api.names`, turned into errors at a path.

Handwritten rules count characters where they mean bytes, and their declarative counterparts say bytes; the wording of
both is Kubernetes'. Functions named `*_format` are the declarative ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from dray.api.names import (
    check_dns_label,
    check_dns_subdomain,
    driver_name_problems,
    fully_qualified_name_problems,
    identifier_problems,
    is_extended_resource_name,
    node_name_problems,
    pool_name_problems,
    qualified_name_problems,
    uid_problems,
)
from dray.api.names import (
    check_label_value as label_value_problems,
)
from dray.api.names import (
    check_qualified_name as label_key_problems,
)
from dray.api.problems import INVALID, REQUIRED, Problem
from dray.validation.fields import (
    Errors,
    ErrorType,
    FieldError,
    Path,
    byte_length,
    invalid,
    required,
    too_long,
)
from dray.validation.rendering import JsonText

__all__ = [
    "check_driver",
    "check_fully_qualified",
    "check_label",
    "check_label_key",
    "check_label_value",
    "check_node_name",
    "check_pool",
    "check_qualified",
    "check_subdomain",
    "check_uid",
    "dns_label_problems",
    "extended_resource_format",
    "fully_qualified_format",
    "is_extended_resource_name",
    "is_fully_qualified",
    "label_key_format",
    "label_key_problems",
    "label_value_problems",
    "long_name_caseless_format",
    "long_name_format",
    "path_segment_problems",
    "pool_format",
    "short_name_format",
    "subdomain_prefix_problems",
    "subdomain_problems",
    "uuid_format",
]

SHORT_NAME: Final = "format=k8s-short-name"
LONG_NAME: Final = "format=k8s-long-name"
CASELESS_NAME: Final = "format=k8s-long-name-caseless"
LABEL_KEY: Final = "format=k8s-label-key"
POOL_NAME: Final = "format=k8s-resource-pool-name"
FULLY_QUALIFIED: Final = "format=k8s-resource-fully-qualified-name"
EXTENDED_RESOURCE: Final = "format=k8s-extended-resource-name"
UUID: Final = "format=k8s-uuid"

_CASELESS_SUBDOMAIN: Final = (
    "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'Example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_UUID: Final = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_LARGEST_POOL_NAME: Final = 253
_LARGEST_DRIVER_NAME: Final = 63
_LARGEST_IDENTIFIER: Final = 32

dns_label_problems = check_dns_label
subdomain_problems = check_dns_subdomain


def subdomain_prefix_problems(text: str) -> tuple[str, ...]:
    """A text that becomes a subdomain when something is appended to it: it may end with a hyphen."""
    return check_dns_subdomain(text[:-2] + "a" if len(text) > 1 and text.endswith("-") else text)


def path_segment_problems(text: str, prefix: bool) -> tuple[str, ...]:
    if not prefix and text in (".", ".."):
        return (f"may not be '{text}'",)
    return tuple(f"may not contain '{character}'" for character in "/%" if character in text)


# Handwritten rules


def _add(problems: Iterable[Problem], path: Path, errors: Errors, *, origin: str = "", covered: bool = False) -> None:
    for problem in problems:
        if problem.type == REQUIRED:
            error = required(path)
        elif problem.type == INVALID:
            value = JsonText(problem.value) if problem.value_as_json else problem.value
            error = invalid(path, value, problem.detail, origin=origin)
        else:
            error = FieldError(ErrorType.TOO_LONG, str(path), "", problem.detail, origin)
        errors.append(replace(error, covered=covered) if covered else error)


def check_label(text: str, path: Path, errors: Errors, *, covered: bool = False) -> None:
    """The name of a request, a device or a counter."""
    for problem in check_dns_label(text):
        error = invalid(path, text, problem, origin=SHORT_NAME)
        errors.append(replace(error, covered=covered) if covered else error)


def check_subdomain(text: str, path: Path, errors: Errors, *, covered: bool = False) -> None:
    for problem in check_dns_subdomain(text):
        error = invalid(path, text, problem, origin=LONG_NAME)
        errors.append(replace(error, covered=covered) if covered else error)


def check_driver(text: str, path: Path, errors: Errors, *, covered: bool = False) -> None:
    found = driver_name_problems(text)
    if not found:
        return
    if not covered:
        _add(found, path, errors)
        return
    for problem in found:
        origin = {INVALID: CASELESS_NAME, REQUIRED: ""}.get(problem.type, "maxLength")
        _add([problem], path, errors, origin=origin, covered=True)


def check_pool(text: str, path: Path, errors: Errors, *, covered: bool = False) -> None:
    if found := pool_name_problems(text):
        _add(found, path, errors, origin=POOL_NAME, covered=covered)


def check_node_name(text: str, path: Path, errors: Errors) -> None:
    _add(node_name_problems(text), path, errors)


def check_uid(text: str, path: Path, errors: Errors) -> None:
    _add(uid_problems(text), path, errors, origin=UUID, covered=True)


def check_qualified(text: str, path: Path, errors: Errors) -> None:
    """The name of an attribute or a capacity."""
    if found := qualified_name_problems(text):
        _add(found, path, errors)


def check_fully_qualified(text: str, path: Path, errors: Errors) -> None:
    _add(fully_qualified_name_problems(text), path, errors, origin=FULLY_QUALIFIED, covered=True)


def is_fully_qualified(text: str) -> bool:
    return not fully_qualified_name_problems(text)


def check_label_key(text: str, path: Path, errors: Errors, *, covered: bool = False) -> None:
    for problem in label_key_problems(text):
        error = invalid(path, text, problem, origin=LABEL_KEY)
        errors.append(replace(error, covered=covered) if covered else error)


def check_label_value(text: str, path: Path, errors: Errors) -> None:
    for problem in label_value_problems(text):
        errors.append(invalid(path, text, problem))


# Declarative rules


def _in_bytes(problems: Iterable[str]) -> Iterable[str]:
    """The wording of declarative rules: lengths are in bytes."""
    for problem in problems:
        yield problem.removesuffix("characters") + "bytes" if problem.startswith("must be no more than") else problem


def _formatted(
    text: str, path: Path, problems: Callable[[str], tuple[str, ...]], origin: str, prefix: str = ""
) -> list[FieldError]:
    return [invalid(path, text, prefix + problem, origin=origin) for problem in _in_bytes(problems(text))]


def short_name_format(text: str, path: Path) -> list[FieldError]:
    return _formatted(text, path, check_dns_label, SHORT_NAME)


def long_name_format(text: str, path: Path) -> list[FieldError]:
    return _formatted(text, path, check_dns_subdomain, LONG_NAME)


def long_name_caseless_format(text: str, path: Path) -> list[FieldError]:
    found = []
    for error in _formatted(text, path, lambda value: check_dns_subdomain(value.lower()), CASELESS_NAME):
        sized = error.detail.startswith("must be no more than")
        found.append(error if sized else replace(error, detail=_CASELESS_SUBDOMAIN))
    return found


def label_key_format(text: str, path: Path) -> list[FieldError]:
    return _formatted(text, path, label_key_problems, LABEL_KEY)


def uuid_format(text: str, path: Path) -> list[FieldError]:
    if _UUID.fullmatch(text):
        return []
    return [invalid(path, text, "must be a lowercase UUID in 8-4-4-4-12 format", origin=UUID)]


def pool_format(text: str, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if byte_length(text) > _LARGEST_POOL_NAME:
        errors.append(too_long(path, _LARGEST_POOL_NAME, origin=POOL_NAME))
    for position, part in enumerate(text.split("/")):
        if not part:
            errors.append(invalid(path, text, f"segment {position}: must not be empty", origin=POOL_NAME))
        else:
            errors += _formatted(part, path, check_dns_subdomain, POOL_NAME, f"segment {position}: ")
    return errors


def fully_qualified_format(text: str, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    match text.split("/"):
        case [name]:
            errors += _identifier_format(name, path)
        case [domain, name]:
            if not domain:
                errors.append(invalid(path, "", "prefix must not be empty", origin=FULLY_QUALIFIED))
            else:
                if byte_length(domain) > _LARGEST_DRIVER_NAME:
                    errors.append(too_long(path, _LARGEST_DRIVER_NAME, origin=FULLY_QUALIFIED))
                errors += _formatted(domain, path, check_dns_subdomain, FULLY_QUALIFIED, "prefix: ")
            if not name:
                errors.append(invalid(path, "", "name must not be empty", origin=FULLY_QUALIFIED))
            else:
                errors += _identifier_format(name, path)
    if "/" not in text:
        detail = "a fully qualified name must be a domain and a name separated by a slash"
        errors.append(invalid(path, text, detail, origin=FULLY_QUALIFIED))
    return errors


def _identifier_format(text: str, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    for problem in identifier_problems(text):
        if problem.type == INVALID:
            errors.append(invalid(path, text, problem.detail, origin=FULLY_QUALIFIED))
        else:
            errors.append(too_long(path, _LARGEST_IDENTIFIER, origin=FULLY_QUALIFIED))
    return errors


def extended_resource_format(text: str, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if "/" not in text:
        detail = "a name must be a domain-prefixed path, such as 'example.com/my-prop'"
        errors.append(invalid(path, text, detail, origin=EXTENDED_RESOURCE))
    elif "kubernetes.io/" in text:
        errors.append(invalid(path, text, 'must not have "kubernetes.io/" domain', origin=EXTENDED_RESOURCE))
    if text.startswith("requests."):
        errors.append(invalid(path, text, 'must not have "requests." prefix', origin=EXTENDED_RESOURCE))
    for problem in label_key_problems(f"requests.{text}"):
        errors.append(invalid(path, text, problem, origin=EXTENDED_RESOURCE))
    return errors
