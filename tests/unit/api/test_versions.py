from __future__ import annotations

import pickle

import pytest

from dray.api.versions import InvalidVersion, Semver, version_problems


def test_versions_are_ordered_by_number_and_prereleases_come_first() -> None:
    texts = ["1.0.0-1", "1.0.0-2", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-beta", "1.0.0", "1.2.0", "1.10.0"]
    backwards = [Semver.parse(text) for text in reversed(texts)]
    assert list(map(str, sorted(backwards))) == texts


def test_build_metadata_is_kept_but_does_not_count() -> None:
    version = Semver.parse("1.2.3-rc.1+build.5")
    assert str(version) == "1.2.3-rc.1+build.5"
    assert version == Semver.parse("1.2.3-rc.1")
    assert hash(version) == hash(Semver.parse("1.2.3-rc.1+other"))


def test_normalizing_forgives_a_prefix_missing_parts_and_leading_zeros() -> None:
    assert str(Semver.parse("v01.2", normalize=True)) == "1.2.0"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Version string empty"),
        ("1.2", "No Major.Minor.Patch elements found"),
        ("v1.2.3", 'Invalid character(s) found in major number "v1"'),
        ("1.02.3", 'Minor number must not contain leading zeroes "02"'),
        ("1.2.3-01", 'Numeric PreRelease version must not contain leading zeroes "01"'),
        ("18446744073709551616.0.0", 'strconv.ParseUint: parsing "18446744073709551616": value out of range'),
    ],
)
def test_an_invalid_version_says_why(text: str, reason: str) -> None:
    with pytest.raises(InvalidVersion) as failure:
        Semver.parse(text)
    assert str(failure.value) == reason


def test_a_number_of_thousands_of_digits_is_out_of_range() -> None:
    with pytest.raises(InvalidVersion, match="out of range"):
        Semver.parse("9" * 5000 + ".0.0")


def test_attributes_may_have_numbers_that_cel_cannot_read() -> None:
    assert version_problems("18446744073709551616.0.0") == ()


def test_attributes_are_limited_to_64_bytes() -> None:
    assert [problem.type for problem in version_problems("1.0.0+" + "b" * 60)] == ["FieldValueTooLong"]


def test_versions_survive_pickling() -> None:
    version = Semver.parse("1.2.3-a.1+b")
    assert str(pickle.loads(pickle.dumps(version))) == str(version)
