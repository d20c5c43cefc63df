"""Names that an expression probably meant: it reads an attribute or capacity that no device has, but a similar one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Final, Literal, NamedTuple

from dray.cel.devices import DeviceValue
from dray.cel.reads import Reads

Kind = Literal["attributes", "capacity"]
"""As expressions spell it: `device.attributes`, `device.capacity`."""

CLOSE_ENOUGH: Final = 0.7
"""Names that are less similar than this are taken for different ones."""


class DeviceField(NamedTuple):
    """Something that devices have; `name` is fully qualified."""

    kind: Kind
    name: str

    def __str__(self) -> str:
        return f"{'attribute' if self.kind == 'attributes' else 'capacity'} {self.name}"


class Suggestion(NamedTuple):
    written: DeviceField
    meant: DeviceField | None
    """None if nothing is similar."""


def suggest_fields(reads: Reads | None, devices: Iterable[DeviceValue]) -> tuple[Suggestion, ...]:
    """What the expression reads that no device has, and what it may have meant. None: it may read anything."""
    if reads is None:
        return ()
    known = {field for device in devices if device.error is None for field in _fields(device)}
    if not known:
        return ()
    written = [
        *(DeviceField("attributes", name) for name in sorted(reads.attributes)),
        *(DeviceField("capacity", name) for name in sorted(reads.capacities)),
    ]
    return tuple(Suggestion(field, _closest(field, known)) for field in written if field not in known)


def suggest_name(written: str, known: Iterable[str]) -> str | None:
    """The most similar of the known names, if one is similar at all."""
    best = max(sorted(known), key=lambda name: _similarity(written, name), default=None)
    return best if best is not None and _similarity(written, best) >= CLOSE_ENOUGH else None


def correct(text: str, suggestion: Suggestion) -> str:
    """The expression with the name that was probably meant; unchanged if the name isn't written out in it."""
    if suggestion.meant is None:
        return text
    kind, name = suggestion.written
    domain, _, identifier = name.partition("/")
    right_domain, _, right_identifier = suggestion.meant.name.partition("/")
    pattern = re.compile(
        rf"\b{kind}(?P<open>\s*\[\s*[\"']){re.escape(domain)}(?P<close>[\"']\s*\])"
        rf"(?P<before>\s*\.\s*\??\s*|\s*\[\s*\??\s*[\"']){re.escape(identifier)}\b"
    )
    return pattern.sub(
        lambda found: (
            f"{suggestion.meant.kind if suggestion.meant else kind}{found['open']}{right_domain}"
            f"{found['close']}{found['before']}{right_identifier}"
        ),
        text,
    )


def _fields(device: DeviceValue) -> Iterable[DeviceField]:
    kinds: tuple[tuple[Kind, object], ...] = (("attributes", device.attributes), ("capacity", device.capacity))
    for kind, domains in kinds:
        if isinstance(domains, dict):
            for domain, entries in domains.items():
                yield from (DeviceField(kind, f"{domain}/{name}") for name in entries)


def _closest(written: DeviceField, known: set[DeviceField]) -> DeviceField | None:
    best = max(sorted(known), key=lambda field: _field_similarity(written, field))
    return best if _field_similarity(written, best) >= CLOSE_ENOUGH else None


def _field_similarity(written: DeviceField, known: DeviceField) -> float:
    domain, _, identifier = written.name.partition("/")
    known_domain, _, known_identifier = known.name.partition("/")
    names = _similarity(identifier, known_identifier)
    if names < CLOSE_ENOUGH:
        return 0.0
    # The right name in another domain, or a capacity taken for an attribute, still is a good guess.
    return names * 0.8 + _similarity(domain, known_domain) * 0.15 + (written.kind == known.kind) * 0.05


def _similarity(one: str, other: str) -> float:
    return SequenceMatcher(None, one.lower(), other.lower(), autojunk=False).ratio()
