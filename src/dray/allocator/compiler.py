"""Compiles claims to programs and remembers them; shared by an index and all its forks, since it holds no state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from dray.allocator.program import ClaimProgram, FindClass, Program
from dray.allocator.shapes import Attributes, View
from dray.allocator.statistics import Statistics
from dray.api.claims import ResourceClaim, ResourceClaimSpec
from dray.api.features import FeatureGates

MOST_SPECS: Final = 4096
"""How many are remembered. When there are more, all are forgotten: that is rare, and no list of uses is needed."""

MOST_CLASSES: Final = 1 << 20
"""So many classes of devices a view may tell apart before it is given up for a new one."""

_ENCODER: Final = msgspec.json.Encoder(enc_hook=str)


class Compiler:
    def __init__(self, gates: FeatureGates, statistics: Statistics) -> None:
        self._gates: Final = gates
        self._statistics: Final = statistics
        self._by_identity: dict[int, tuple[ResourceClaimSpec, ClaimProgram]] = {}
        """Keeps the spec, so that its identity isn't used again."""
        self._by_content: dict[bytes, ClaimProgram] = {}
        self._programs: dict[tuple[int, ...], Program] = {}
        self._views: dict[Attributes, View] = {}

    def program(self, claims: Sequence[ResourceClaim], find_class: FindClass) -> Program:
        parts = tuple([self._claim_program(claim.spec, find_class) for claim in claims])
        key = tuple(map(id, parts))
        found = self._programs.get(key)
        if found is None:
            if len(self._programs) >= MOST_SPECS:
                self._programs.clear()
            found = self._programs[key] = Program(parts, self._gates)
        return found

    def view(self, program: Program) -> View:
        if program.view is None:
            attributes = program.attributes
            found = self._views.get(attributes)
            if found is None:
                found = self._views[attributes] = View(attributes)
            program.view = found
        if program.view.size > MOST_CLASSES:
            # Devices have come and gone for a long time. What is known of them goes too.
            self._forget()
            program.view = None
            return self.view(program)
        return program.view

    def _forget(self) -> None:
        for program in self._programs.values():
            program.view = None
            program.tables.clear()
        self._by_identity.clear()
        self._by_content.clear()
        self._programs.clear()
        self._views.clear()

    def _claim_program(self, spec: ResourceClaimSpec, find_class: FindClass) -> ClaimProgram:
        known = self._by_identity.get(id(spec))
        if known is not None and known[1].is_current(find_class):
            return known[1]
        content = _ENCODER.encode(spec)
        found = self._by_content.get(content)
        if found is None or not found.is_current(find_class):
            found = self._by_content[content] = ClaimProgram(spec, find_class, self._gates)
            self._statistics.programs += 1
        if len(self._by_identity) >= MOST_SPECS:
            self._by_identity.clear()
            self._by_content.clear()
        self._by_identity[id(spec)] = (spec, found)
        return found
