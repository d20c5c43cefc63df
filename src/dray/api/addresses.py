"""Addresses of network interfaces (`10.9.8.7/24`), read as leniently as Kubernetes does, judged by canonical form."""

from __future__ import annotations

import ipaddress
import re
from typing import Final

from dray.api.problems import INVALID, Problem
from dray.api.quoting import quote

_TOO_BIG: Final = 0xFFFFFF
_DECIMAL: Final = re.compile("[0-9]+")
_HEXADECIMAL: Final = re.compile("[0-9a-fA-F]+")
_V4_MAPPED: Final = 0xFFFF << 32


def interface_address_problems(text: str) -> tuple[Problem, ...]:
    """An address with its prefix length, in canonical form; empty if it is one."""
    parsed = _parse_cidr(text)
    if parsed is None:
        detail = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
        return (Problem(INVALID, text, detail),)
    address, prefix = parsed
    if isinstance(address, ipaddress.IPv4Address) and prefix > 32:
        prefix -= 96  # an IPv4 address written as IPv6
    canonical = f"{address}/{prefix}"
    if text == canonical:
        return ()
    return (Problem(INVALID, text, f"must be in canonical form ({quote(canonical)})"),)


def _parse_cidr(text: str) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, int] | None:
    host, slash, mask = text.partition("/")
    if not slash or not _DECIMAL.fullmatch(mask):
        return None
    size, number = 32, _parse_v4(host)
    if number is None:
        size, number = 128, _parse_v6(host)
    prefix = _parse_digits(mask, 10)
    if number is None or prefix is None or prefix > size:
        return None
    if size == 32:
        return ipaddress.IPv4Address(number), prefix
    if number >> 32 == _V4_MAPPED >> 32:
        return ipaddress.IPv4Address(number & 0xFFFFFFFF), prefix
    return ipaddress.IPv6Address(number), prefix


def _parse_digits(digits: str, base: int) -> int | None:
    significant = digits.lstrip("0")
    if len(significant) > 8:
        return None
    number = int(significant or "0", base)
    return number if number < _TOO_BIG else None


def _parse_v4(text: str) -> int | None:
    """Four numbers; leading zeros don't matter."""
    parts = text.split(".")
    if len(parts) != 4:
        return None
    total = 0
    for part in parts:
        number = _parse_digits(part, 10) if _DECIMAL.fullmatch(part) else None
        if number is None or number > 0xFF:
            return None
        total = total << 8 | number
    return total


def _parse_v6(text: str) -> int | None:
    """Eight groups, one `::` for at least one group of zeros, the last two groups perhaps as an IPv4 address."""
    head_text, gap, tail_text = text.partition("::")
    head = _parse_groups(head_text, may_end_in_v4=not gap)
    tail = _parse_groups(tail_text, may_end_in_v4=True) if gap else []
    if head is None or tail is None:
        return None
    missing = 8 - len(head) - len(tail)
    if missing < 1 if gap else missing != 0:
        return None
    total = 0
    for group in head + [0] * missing + tail:
        total = total << 16 | group
    return total


def _parse_groups(text: str, *, may_end_in_v4: bool) -> list[int] | None:
    if not text:
        return []
    parts = text.split(":")
    groups: list[int] = []
    if may_end_in_v4 and "." in parts[-1]:
        number = _parse_v4(parts.pop())
        if number is None:
            return None
        groups = [number >> 16, number & 0xFFFF]
    parsed = [_parse_digits(part, 16) if _HEXADECIMAL.fullmatch(part) else None for part in parts]
    front = [group for group in parsed if group is not None and group <= 0xFFFF]
    return front + groups if len(front) == len(parsed) else None
