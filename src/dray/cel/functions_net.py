"""IP addresses and CIDR blocks, as strict as Kubernetes: no zones, no IPv4 addresses inside IPv6 ones."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import Final

from dray.api.quoting import quote
from dray.cel.errors import EvaluationError
from dray.cel.values import CIDR, IP, IPAddress, Value

_BITS: Final = re.compile("0|[1-9][0-9]{0,2}", re.ASCII)
_V4_BROADCAST: Final = ipaddress.IPv4Address(0xFFFFFFFF)


def _parse_address(text: str, what: str) -> IPAddress:
    if "%" in text:
        raise EvaluationError(f"{what} {quote(text)} with zone value is not allowed")
    try:
        address = ipaddress.ip_address(text)
    except ValueError as error:
        raise EvaluationError(f"{what} {quote(text)} parse error during conversion from string: {error}") from None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise EvaluationError(f"IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return address


def to_ip(text: str) -> IP:
    return IP(_parse_address(text, "IP Address"))


def is_ip(text: str) -> bool:
    return _succeeds(to_ip, text)


def is_canonical_ip(text: str) -> bool:
    return str(to_ip(text)) == text


def to_cidr(text: str) -> CIDR:
    address_text, slash, bits = text.rpartition("/")
    if not slash:
        raise EvaluationError(f"network address parse error during conversion from string: {quote(text)} has no '/'")
    address = _parse_address(address_text, "network address")
    if not _BITS.fullmatch(bits) or int(bits) > address.max_prefixlen:
        raise EvaluationError(
            f"network address parse error during conversion from string: {quote(text)} has a bad prefix length"
        )
    return CIDR(address, int(bits))


def is_cidr(text: str) -> bool:
    return _succeeds(to_cidr, text)


def _succeeds(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text)
    except EvaluationError:
        return False
    return True


def family(ip: IP) -> int:
    return ip.address.version


def is_unspecified(ip: IP) -> bool:
    return ip.address.is_unspecified


def is_loopback(ip: IP) -> bool:
    return ip.address.is_loopback


def is_link_local_unicast(ip: IP) -> bool:
    return ip.address.is_link_local


def is_link_local_multicast(ip: IP) -> bool:
    data = ip.address.packed
    if len(data) == 4:
        return data[:3] == b"\xe0\0\0"
    return data[0] == 0xFF and data[1] & 0x0F == 0x02


def is_global_unicast(ip: IP) -> bool:
    """Also true for private addresses."""
    address = ip.address
    return not (
        address.is_unspecified
        or address == _V4_BROADCAST
        or address.is_loopback
        or address.is_multicast
        or address.is_link_local
    )


def _leading_bits(address: IPAddress, prefix: int) -> int:
    return int(address) >> (address.max_prefixlen - prefix)


def contains_ip(block: CIDR, ip: IP) -> bool:
    address, prefix = block
    return ip.address.version == address.version and _leading_bits(ip.address, prefix) == _leading_bits(address, prefix)


def contains_ip_text(block: CIDR, text: str) -> bool:
    return contains_ip(block, to_ip(text))


def contains_cidr(block: CIDR, other: CIDR) -> bool:
    return block.prefix <= other.prefix and contains_ip(block, IP(other.address))


def contains_cidr_text(block: CIDR, text: str) -> bool:
    return contains_cidr(block, to_cidr(text))


def masked(block: CIDR) -> CIDR:
    address, prefix = block
    rest = address.max_prefixlen - prefix
    return CIDR(type(address)(int(address) >> rest << rest), prefix)


def prefix_length(block: CIDR) -> int:
    return block.prefix


def address_of(block: CIDR) -> IP:
    return IP(block.address)


OVERLOADS: Final[dict[str, Callable[..., Value]]] = {
    "string_to_ip": to_ip,
    "is_ip": is_ip,
    "ip_is_canonical": is_canonical_ip,
    "ip_family": family,
    "ip_is_unspecified": is_unspecified,
    "ip_is_loopback": is_loopback,
    "ip_is_link_local_multicast": is_link_local_multicast,
    "ip_is_link_local_unicast": is_link_local_unicast,
    "ip_is_global_unicast": is_global_unicast,
    "string_to_cidr": to_cidr,
    "is_cidr": is_cidr,
    "cidr_ip": address_of,
    "cidr_contains_ip_string": contains_ip_text,
    "cidr_contains_ip_ip": contains_ip,
    "cidr_contains_cidr_string": contains_cidr_text,
    "cidr_contains_cidr": contains_cidr,
    "cidr_masked": masked,
    "cidr_prefix_length": prefix_length,
}
