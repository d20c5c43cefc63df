from __future__ import annotations

import pytest

from dray.api import names
from dray.api.addresses import interface_address_problems


def test_a_dotted_name_is_no_label_because_of_its_dots() -> None:
    assert names.check_dns_label("a.b") == ("must not contain dots",)
    assert names.check_dns_subdomain("a.b") == ()


def test_lengths_are_counted_in_bytes() -> None:
    assert "must be no more than 63 bytes" in names.check_label_value("ä" * 32)


def test_driver_names_may_have_upper_case() -> None:
    assert names.driver_name_problems("GPU.example.com") == ()


def test_a_missing_driver_name_is_required_not_invalid() -> None:
    assert [str(problem) for problem in names.driver_name_problems("")] == ["Required value"]


def test_each_part_of_a_pool_name_is_checked() -> None:
    assert [problem.value for problem in names.pool_name_problems("good/Bad/also_bad")] == ["Bad", "also_bad"]


def test_an_attribute_name_needs_no_domain_but_a_fully_qualified_one_does() -> None:
    assert names.qualified_name_problems("model") == ()
    [problem] = names.fully_qualified_name_problems("model")
    assert "separated by a slash" in problem.detail


def test_more_than_one_slash_is_tolerated() -> None:
    assert names.qualified_name_problems("a/b/c") == ()


@pytest.mark.parametrize(
    ("uid", "reason"),
    [
        ("x", "invalid UUID length: 1"),
        ("x" * 36, "invalid UUID format"),
        ("x" * 38, "invalid bracketed UUID format"),
        ("x" * 45, 'invalid urn prefix: "xxxxxxxxx"'),
        ("AAAAAAAA-bbbb-4ccc-8ddd-eeeeeeeeeeee", "RFC 4122 normalized form"),
    ],
)
def test_a_uid_that_is_no_plain_uuid_says_why(uid: str, reason: str) -> None:
    [problem] = names.uid_problems(uid)
    assert reason in problem.detail


def test_extended_resources_have_a_domain_that_is_not_kubernetes() -> None:
    answers = {name: names.is_extended_resource_name(name) for name in ("cpu", "example.com/gpu", "kubernetes.io/x")}
    assert answers == {"cpu": False, "example.com/gpu": True, "kubernetes.io/x": False}


def test_long_keys_lose_their_middle() -> None:
    assert names.truncate_key("a" * 10 + "b" * 20, 16) == "aaaaaaa...bbbbbb"
    assert names.truncate_key("short", 1) == "short"


@pytest.mark.parametrize("address", ["10.9.8.7/24", "2001:db8::1/64", "::/0", "1:2:3:4:5:6:7:8/128"])
def test_canonical_addresses_are_accepted(address: str) -> None:
    assert interface_address_problems(address) == ()


@pytest.mark.parametrize(
    ("address", "canonical"),
    [
        ("010.0.0.1/024", "10.0.0.1/24"),
        ("2001:DB8:0:0::1/64", "2001:db8::1/64"),
        ("::ffff:1.2.3.4/120", "1.2.3.4/24"),
        ("1::00000002/64", "1::2/64"),
    ],
)
def test_other_spellings_are_answered_with_the_canonical_one(address: str, canonical: str) -> None:
    [problem] = interface_address_problems(address)
    assert problem.detail == f'must be in canonical form ("{canonical}")'


@pytest.mark.parametrize(
    "address",
    [
        "10.0.0.1",
        "10.0.0.1/33",
        "1::2::3/64",
        "1:2:3:4:5:6:7::8:9/64",
        "::1.2.3/64",
        "1.2.3.4:1::/64",
        "12345::/64",
        "/",
        "a/1",
    ],
)
def test_what_is_no_address_is_refused(address: str) -> None:
    [problem] = interface_address_problems(address)
    assert "must be a valid address in CIDR form" in problem.detail
