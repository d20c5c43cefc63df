"""Semantic versions: what a `version` attribute may say, and how versions compare."""

from __future__ import annotations

import re
from typing import Final

from dray.api.problems import INVALID, Problem, too_long
from dray.api.quoting import quote
from dray.api.text_cache import cached_by_text

MAX_VERSION_LENGTH: Final = 64
_MAX_UINT64: Final = (1 << 64) - 1
_DIGITS: Final = frozenset("0123456789")
_ALPHANUMERIC: Final = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-")

_NUMBER: Final = "(?:0|[1-9][0-9]*)"
_PRERELEASE_PART: Final = rf"(?:{_NUMBER}|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)"
_SPECIFICATION: Final = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}"
    rf"(?:-{_PRERELEASE_PART}(?:\.{_PRERELEASE_PART})*)?"
    r"(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?"
)


class InvalidVersion(ValueError):
    """The text is no version; the message is the one that CEL's `semver()` reports."""


class Semver:
    """A version with the order of semver.org: build metadata is kept, but doesn't count in comparisons."""

    __slots__ = ("build", "key", "major", "minor", "patch", "prerelease")

    def __init__(
        self,
        major: int,
        minor: int,
        patch: int,
        prerelease: tuple[int | str, ...] = (),
        build: tuple[str, ...] = (),
    ) -> None:
        self.major: Final = major
        self.minor: Final = minor
        self.patch: Final = patch
        self.prerelease: Final = prerelease
        self.build: Final = build
        # A release follows its prereleases; numbers come before words.
        words = tuple((0, part, "") if isinstance(part, int) else (1, 0, part) for part in prerelease)
        self.key: Final = (major, minor, patch, not prerelease, words)

    @staticmethod
    def parse(text: str, *, normalize: bool = False) -> Semver:
        """Read a version; raises InvalidVersion.

        With `normalize` a leading `v`, missing minor and patch numbers and leading zeros are forgiven.
        """
        return _parse_normalized(text) if normalize else _parse(text)

    def __str__(self) -> str:
        text = f"{self.major}.{self.minor}.{self.patch}"
        if self.prerelease:
            text += "-" + ".".join(map(str, self.prerelease))
        if self.build:
            text += "+" + ".".join(self.build)
        return text

    def __repr__(self) -> str:
        return f"Semver({str(self)!r})"

    def __reduce__(self) -> tuple[type[Semver], tuple[int, int, int, tuple[int | str, ...], tuple[str, ...]]]:
        return Semver, (self.major, self.minor, self.patch, self.prerelease, self.build)

    def compare(self, other: Semver) -> int:
        """-1, 0 or 1."""
        return (self.key > other.key) - (self.key < other.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Semver) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __lt__(self, other: Semver) -> bool:
        return self.key < other.key

    def __le__(self, other: Semver) -> bool:
        return self.key <= other.key

    def __gt__(self, other: Semver) -> bool:
        return self.key > other.key

    def __ge__(self, other: Semver) -> bool:
        return self.key >= other.key


@cached_by_text
def version_problems(text: str) -> tuple[Problem, ...]:
    """What is wrong with a version attribute; empty if nothing.

    The rule is not whether it parses: numbers of more than 64 bits are valid here and fail only in CEL.
    """
    problems = []
    if _SPECIFICATION.fullmatch(text) is None:
        problems.append(Problem(INVALID, text, "must be a string compatible with semver.org spec 2.0.0"))
    if len(text.encode(errors="surrogatepass")) > MAX_VERSION_LENGTH:
        problems.append(too_long(text, MAX_VERSION_LENGTH))
    return tuple(problems)


@cached_by_text
def _parse(text: str) -> Semver:
    if not text:
        raise InvalidVersion("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise InvalidVersion("No Major.Minor.Patch elements found")
    major = _parse_part("major", parts[0])
    minor = _parse_part("minor", parts[1])
    rest, plus, build = parts[2].partition("+")
    number, minus, prerelease = rest.partition("-")
    patch = _parse_part("patch", number)
    prerelease_parts = tuple(map(_parse_prerelease, prerelease.split("."))) if minus else ()
    build_parts = tuple(build.split(".")) if plus else ()
    for part in build_parts:
        if not part:
            raise InvalidVersion("Build meta data is empty")
        if not _ALPHANUMERIC.issuperset(part):
            raise InvalidVersion(f"Invalid character(s) found in build meta data {quote(part)}")
    return Semver(major, minor, patch, prerelease_parts, build_parts)


def _parse_normalized(text: str) -> Semver:
    parts = [_without_leading_zeros(part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise InvalidVersion("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return _parse(".".join(parts))


def _without_leading_zeros(part: str) -> str:
    if len(part.encode(errors="surrogatepass")) <= 1:
        return part
    stripped = part.lstrip("0")
    return stripped if stripped[:1] in _DIGITS else "0" + stripped


def _parse_part(name: str, text: str) -> int:
    if not _DIGITS.issuperset(text):
        raise InvalidVersion(f"Invalid character(s) found in {name} number {quote(text)}")
    if len(text) > 1 and text[0] == "0":
        raise InvalidVersion(f"{name.capitalize()} number must not contain leading zeroes {quote(text)}")
    return _parse_number(text)


def _parse_prerelease(text: str) -> int | str:
    if not text:
        raise InvalidVersion("Prerelease is empty")
    if _DIGITS.issuperset(text):
        if len(text) > 1 and text[0] == "0":
            raise InvalidVersion(f"Numeric PreRelease version must not contain leading zeroes {quote(text)}")
        return _parse_number(text)
    if not _ALPHANUMERIC.issuperset(text):
        raise InvalidVersion(f"Invalid character(s) found in prerelease {quote(text)}")
    return text


def _parse_number(digits: str) -> int:
    if not digits:
        raise InvalidVersion('strconv.ParseUint: parsing "": invalid syntax')
    # The length is looked at first because Python refuses to read integers of thousands of digits.
    if len(digits) > 20 or int(digits) > _MAX_UINT64:
        raise InvalidVersion(f"strconv.ParseUint: parsing {quote(digits)}: value out of range")
    return int(digits)
