"""Quantities, versions, addresses, URLs and formats."""

from __future__ import annotations

import pytest

from tests.unit.cel.builders import error_of, value_of


@pytest.mark.parametrize(
    "text",
    [
        "quantity('1.5Gi').isGreaterThan(quantity('1Gi')) && quantity('1').isLessThan(quantity('1k'))",
        "quantity('50k').compareTo(quantity('50000')) == 0 && sign(quantity('-1')) == -1",
        "quantity('1').add(quantity('2')).sub(1).asInteger() == 2",
        "quantity('50m').asApproximateFloat() == 0.05 && !quantity('50m').isInteger() && isQuantity('1Ki')",
        "!isQuantity('1Kib') && !isQuantity('')",
        "semver('1.2.3-rc.1').isLessThan(semver('1.2.3')) && semver('v1.2', true).minor() == 2",
        "isSemver('1.2.3') && !isSemver('v1.2.3') && isSemver('v1.2.3', true) && !isSemver('1')",
        "ip('::1').family() == 6 && ip('127.0.0.1').isLoopback() && ip('0.0.0.0').isUnspecified()",
        "ip('10.0.0.1').isGlobalUnicast() && ip('169.254.0.1').isLinkLocalUnicast()",
        "ip('224.0.0.1').isLinkLocalMulticast() && ip('ff02::1').isLinkLocalMulticast()",
        "!ip('255.255.255.255').isGlobalUnicast() && !ip('ff05::1').isLinkLocalMulticast()",
        "ip.isCanonical('2001:db8::1') && !ip.isCanonical('2001:DB8::1') && !isIP('1.2.3') && !isIP('010.0.0.1')",
        "!isIP('fe80::1%eth0') && !isIP('::ffff:1.2.3.4') && string(ip('2001:DB8::0:1')) == '2001:db8::1'",
        "cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8') && cidr('10.1.2.3/8').ip() == ip('10.1.2.3')",
        "cidr('10.0.0.0/8').containsIP('10.9.9.9') && !cidr('10.0.0.0/8').containsIP(ip('::1'))",
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !cidr('10.1.0.0/16').containsCIDR(cidr('10.0.0.0/8'))",
        "cidr('fd00::/64').prefixLength() == 64 && !isCIDR('10.0.0.0/33') && !isCIDR('10.0.0.0/08') && !isCIDR('x')",
        "url('https://u@example.com:80/a?k=v&k=w').getHostname() == 'example.com'",
        "url('https://example.com:80/a%20b?k=v&k=w').getQuery() == {'k': ['v', 'w']}",
        "url('http://[::1]:80/').getPort() == '80' && isURL('/a') && !isURL('a b')",
        "format.dns1123Label().validate('a-b') == optional.none() && format.named('nope') == optional.none()",
        "format.dns1123LabelPrefix().validate('a-').hasValue() == false && format.uuid().validate('x').hasValue()",
        "format.date().validate('2024-02-29').hasValue() == false && format.date().validate('2023-02-29').hasValue()",
        "!format.datetime().validate('2024-02-29T01:02:03Z').hasValue() && format.byte().validate('*').hasValue()",
        "!format.uuid().validate('0123456789abcdef0123-456789abcdef').hasValue()",
        "format.byte().validate('').hasValue() && !format.byte().validate('YQ==').hasValue()",
        "!format.datetime().validate('2024-01-01t00:00:00x5+99:99').hasValue()",
        "format.datetime().validate('2024-01-01 00:00:00Z').hasValue() && format.datetime().validate('').hasValue()",
        "format.uri().validate('https://x').hasValue() == false && format.labelValue().validate('-').hasValue()",
    ],
)
def test_these_hold(text: str) -> None:
    assert value_of(text) is True


@pytest.mark.parametrize(
    "text",
    [
        "quantity('x')",
        "semver('1')",
        "ip('1.2.3')",
        "cidr('1.2.3.4')",
        "url('x')",
        "quantity('1.5').asInteger()",
        "cidr('10.0.0.0/8').containsIP('x')",
    ],
)
def test_what_cannot_be_read_is_an_error(text: str) -> None:
    error_of(text)
