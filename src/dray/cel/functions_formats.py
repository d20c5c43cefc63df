"""Kubernetes' named formats: `format.dns1123Label().validate(x)` gives none, or what is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from dray.api.names import (
    check_dns1035_label,
    check_dns_label,
    check_dns_subdomain,
    check_label_value,
    check_qualified_name,
)
from dray.api.quoting import quote
from dray.cel.go_urls import InvalidURL, parse_request_uri
from dray.cel.instants import parse_timestamp
from dray.cel.values import NONE, Format, Optional, Value

_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})", re.ASCII)
_UUID: Final = re.compile(r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.ASCII)
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_CLOCK: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[^\n][0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})", re.ASCII)


def _listing(check: Callable[[str], tuple[str, ...]]) -> Callable[[str], list[str]]:
    return lambda text: list(check(text))


def _as_prefix(check: Callable[[str], tuple[str, ...]]) -> Callable[[str], list[str]]:
    """For the beginning of a generated name, which may end in a dash."""

    def check_prefix(text: str) -> list[str]:
        if len(text) > 1 and text.endswith("-"):
            text = f"{text[:-2]}a"
        return list(check(text))

    return check_prefix


def _check_uri(text: str) -> list[str]:
    try:
        parse_request_uri(text)
    except InvalidURL as error:
        return [f"parse {quote(text)}: {error}"]
    return []


def _check_uuid(text: str) -> list[str]:
    return [] if _UUID.fullmatch(text) else ["does not match the UUID format"]


def _check_base64(text: str) -> list[str]:
    return [] if _BASE64.fullmatch(text) else ["invalid base64"]


def _is_date(text: str) -> bool:
    return _DATE.fullmatch(text) is not None and parse_timestamp(f"{text}T00:00:00Z") is not None


def _check_date(text: str) -> list[str]:
    return [] if _is_date(text) else ["invalid date"]


def _check_date_time(text: str) -> list[str]:
    """As lenient as Kubernetes: any separator before fractions, any zone, and anything after a second `t`."""
    date, *rest = text.lower().split("t")
    clock = _CLOCK.fullmatch(rest[0]) if rest and _is_date(date) else None
    if clock is not None and clock[1] <= "23" and clock[2] <= "59" and clock[3] <= "59":
        return []
    return ["invalid datetime"]


FORMATS: Final[dict[str, Format]] = {
    "dns1123Label": Format("DNS1123Label", _listing(check_dns_label), 30),
    "dns1123Subdomain": Format("DNS1123Subdomain", _listing(check_dns_subdomain), 60),
    "dns1035Label": Format("DNS1035Label", _listing(check_dns1035_label), 30),
    "qualifiedName": Format("QualifiedName", _listing(check_qualified_name), 60),
    "dns1123LabelPrefix": Format("DNS1123LabelPrefix", _as_prefix(check_dns_label), 30),
    "dns1123SubdomainPrefix": Format("DNS1123SubdomainPrefix", _as_prefix(check_dns_subdomain), 60),
    "dns1035LabelPrefix": Format("DNS1035LabelPrefix", _as_prefix(check_dns1035_label), 30),
    "labelValue": Format("LabelValue", _listing(check_label_value), 40),
    "uri": Format("URI", _check_uri, 1103),
    "uuid": Format("uuid", _check_uuid, 70),
    "byte": Format("byte", _check_base64, 84),
    "date": Format("date", _check_date, 71),
    "datetime": Format("datetime", _check_date_time, 71),
}


def named(name: str) -> Optional:
    found = FORMATS.get(name)
    return NONE if found is None else Optional(found)


def validate(format: Format, text: str) -> Optional:
    messages = format.check(text)
    return Optional(messages) if messages else NONE


def _constant(format: Format) -> Callable[[], Format]:
    return lambda: format


OVERLOADS: Final[dict[str, Callable[..., Value]]] = {
    "format-named": named,
    "format-validate": validate,
    **{f"format.{name}": _constant(format) for name, format in FORMATS.items()},
}
