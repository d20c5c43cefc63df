"""Explanations as text: in full for people who ask, and in one line for events and conditions."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from dray.allocator.errors import (
    OPTIONAL_CHAINING_HINT,
    AllocationError,
    ClassMissing,
    ConstraintFailed,
    DerivedAttributeFailed,
    FeatureDisabled,
    SelectorFailed,
    TooManyDevices,
    UnsupportedRequest,
)
from dray.allocator.explain_sets import MOST_SETS, shorten
from dray.allocator.reasons import (
    Change,
    ConstraintGap,
    Explanation,
    GroupReason,
    Loss,
    Obstacle,
    RequestCount,
    Stage,
    StageCount,
    ValueCount,
)
from dray.cel.suggestions import Suggestion

MOST_GROUPS: Final = 4
"""So many stories are told; the others are summed up."""

MOST_REQUESTS: Final = 4
MOST_LOSSES: Final = 3
MOST_VALUES: Final = 6
MOST_CHANGES: Final = 5
WIDTH: Final = 100
_NO_BREAK: Final = "\N{NO-BREAK SPACE}"


# In full


class _Long(NamedTuple):
    """A line that may have to be broken, and how its parts are indented."""

    text: str
    first: str
    others: str

    def broken(self, width: int) -> list[str]:
        wrapper = textwrap.TextWrapper(width, self.first, self.others, break_long_words=False, break_on_hyphens=False)
        return [line.replace(_NO_BREAK, " ") for line in wrapper.wrap(self.text)]


def format_explanation(explanation: Explanation, width: int = WIDTH) -> str:
    """Several lines, without a newline at the end."""
    lines: list[str] = []
    for line in _lines(explanation):
        lines += line.broken(width) if isinstance(line, _Long) else [line]
    return "\n".join(lines)


def _lines(explanation: Explanation) -> Iterator[str | _Long]:
    yield _headline(explanation)
    for group in explanation.groups[:MOST_GROUPS]:
        yield ""
        yield from _group_lines(group, len(explanation.claims) > 1)
    more = sum(len(group.nodes) for group in explanation.groups[MOST_GROUPS:])
    if more:
        yield ""
        yield f"{_count(more, 'more node')} {'is' if more == 1 else 'are'} no closer to a fit."
    if explanation.changes:
        yield ""
        yield "It would fit"
        yield from (_Long(_change(change), "  - ", "    ") for change in explanation.changes[:MOST_CHANGES])


def _headline(explanation: Explanation) -> str:
    names = [str(key) for key in explanation.claims]
    one = len(names) == 1
    subject = f"Claim {names[0]}" if one else f"Claims {_listing(names)}"
    if explanation.nodes == 0:
        return f"{subject} {'has' if one else 'have'} nowhere to go: there are no nodes."
    if explanation.fits:
        where = f"{explanation.fitting} of {_count(explanation.nodes, 'node')}"
        return f"{subject} {'fits' if one else 'fit together'} on {where}."
    where = "the only node" if explanation.nodes == 1 else f"any of {explanation.nodes} nodes"
    return f"{subject} {'does not fit' if one else 'do not fit together'} on {where}."


def _group_lines(group: GroupReason, several: bool) -> Iterator[str | _Long]:
    where = _nodes(group.nodes)
    subject = where[0].upper() + where[1:] if len(group.nodes) > 1 else where
    match group.obstacle:
        case Obstacle.ERROR:
            if is_about_claim(group.error):
                yield f"{'As they are, they' if several else 'As it is, it'} can't be allocated anywhere:"
            else:
                yield f"On {where}, the allocation stops with an error:"
            first, *drawing = _error_text(group).splitlines()
            yield _Long(first, "  ", "  ")
            yield from (f"  {line}" for line in drawing)
            for count in group.requests:
                yield from _stage_lines(count)
            if group.gap is not None:
                yield from _gap_lines(group.gap)
        case Obstacle.REQUEST:
            for number, count in enumerate(group.blocked[:MOST_REQUESTS]):
                yield _Long(_need(count, several), f"{subject}: " if number == 0 else "and: ", "  ")
                yield from _stage_lines(count)
            if len(group.blocked) > MOST_REQUESTS:
                yield f"and {len(group.blocked) - MOST_REQUESTS} more requests or alternatives"
        case Obstacle.TOGETHER:
            yield _Long(f"{_competition(group, several)}: {group.detail}.", f"{subject}: ", "  ")
            for count in group.feasible:
                yield f"  {_request_needs(count, several)}, {count.available} could be had"
        case Obstacle.CONSTRAINT if group.gap is not None:
            yield _Long(_gap_sentence(group.gap), f"{subject}: ", "  ")
            yield from _gap_lines(group.gap)
    for problem in group.pools[:MOST_LOSSES]:
        yield _Long(f"pool {problem.pool} {problem.reason}", "  not counted: ", "    ")


def is_about_claim(error: AllocationError | None) -> bool:
    """Whether the claim as it is can't be allocated, whatever there is on a node."""
    match error:
        case ClassMissing() | FeatureDisabled() | UnsupportedRequest() | TooManyDevices():
            return True
        case SelectorFailed() | DerivedAttributeFailed():
            return error.device is None
        case ConstraintFailed():
            return not error.devices
        case _:
            return False


def _error_text(group: GroupReason) -> str:
    """Kubernetes' hint on missing keys is left out where a better one follows."""
    text = str(group.error)
    if any(stage.hints for count in group.requests for stage in count.stages):
        text = text.replace(OPTIONAL_CHAINING_HINT, "")
    return f"{text} ({group.detail})" if group.detail else text


def _competition(group: GroupReason, several: bool) -> str:
    counts = group.feasible
    if len(counts) == 1:
        return f"the devices for request {counts[0].request} could be had one by one, but not all"
    if several:
        return "the requests of the claims could each be satisfied, but not all of them"
    return f"requests {_listing([each.request for each in counts])} could each be satisfied, but not all of them"


def _need(count: RequestCount, several: bool) -> str:
    stage = count.bottleneck
    left = "none" if stage.left == 0 else f"only {stage.left}"
    be, have, match = ("are", "have", "match") if stage.left > 1 else ("is", "has", "matches")
    verdict = {
        Stage.SEEN: f"there {be} {left}",
        Stage.CLASS: f"there {be} {left}",
        Stage.SELECTORS: f"{left} {match} its selectors",
        Stage.ENABLED: f"{left} can be used here",
        Stage.CAPACITY: f"{left} {have} enough capacity",
        Stage.UNTAINTED: f"{left} {be} without taint",
        Stage.FREE: f"{left} {be} free",
        Stage.ROOM: f"{left} {have} room left",
    }
    return f"{_request_needs(count, several)}, {verdict[stage.stage]}."


def _request_needs(count: RequestCount, several: bool) -> str:
    """`several`: the request must be told from one of the same name in another claim."""
    of_claim = f" of claim {count.claim.name}" if several else ""
    return f"request {count.request}{of_claim} needs {_wanted(count)} of class {count.device_class}"


_LABELS: Final = {
    Stage.ENABLED: "usable here",
    Stage.CAPACITY: "with enough capacity",
    Stage.UNTAINTED: "without taint",
    Stage.FREE: "free",
    Stage.ROOM: "with room left",
}


def _stage_lines(count: RequestCount) -> Iterator[str | _Long]:
    """A line per stage that leaves devices behind; the first two always, if there is anything to count."""
    if count.stages[0].left == 0:
        return
    selectors = [stage for stage in count.stages if stage.stage == Stage.SELECTORS]
    most = max((stage.rejects for stage in selectors), default=0)
    rows: list[tuple[str, StageCount]] = []
    before = count.stages[0].left
    for stage in count.stages:
        if stage.stage <= Stage.CLASS or stage.left < before:
            rows.append((_label(count, stage), stage))
        before = stage.left
    width = max(len(label) for label, _ in rows)
    for label, stage in rows:
        notes = [_losses(stage.losses)]
        if len(selectors) > 1 and stage.stage == Stage.SELECTORS and stage.rejects == most:
            notes.append(f"this one alone rejects {most}")
        note = "; ".join(filter(None, notes))
        start = f"  {label:<{width}}  {stage.left:>3}"
        yield _Long(note, f"{start}   ", " " * (len(start) + 3)) if note else start
        if stage.expression:
            yield _Long(shorten(stage.expression, 3 * WIDTH), "    ", "    ")
        for hint in stage.hints:
            yield _Long(_hint(hint), "    ", "    ")


def _label(count: RequestCount, stage: StageCount) -> str:
    match stage.stage:
        case Stage.SEEN:
            return "devices in reach"
        case Stage.CLASS:
            return f"of class {count.device_class}"
        case Stage.SELECTORS:
            return f"passing selector #{stage.selector}"
        case _:
            return _LABELS[stage.stage]


def _hint(hint: Suggestion) -> str:
    if hint.meant is None:
        return f"no device has the {hint.written}"
    meant = hint.meant.name if hint.meant.kind == hint.written.kind else str(hint.meant)
    return f"no device has the {hint.written}; did you mean {meant}?"


def _losses(losses: Sequence[Loss]) -> str:
    causes = [f"{loss.cause} ({loss.count})" for loss in losses if loss.cause]
    held = [loss for loss in losses if loss.claim is not None and not loss.cause]
    owners = [f"{loss.claim} ({loss.count})" if loss.count > 1 else str(loss.claim) for loss in held]
    parts = [*causes[:MOST_LOSSES], *([f"and {len(causes) - MOST_LOSSES} more"] if len(causes) > MOST_LOSSES else [])]
    if owners:
        more = f" and {len(owners) - MOST_LOSSES} more" if len(owners) > MOST_LOSSES else ""
        parts.append(f"held by {', '.join(owners[:MOST_LOSSES])}{more}")
    return "; ".join(parts)


def _gap_sentence(gap: ConstraintGap) -> str:
    wants = f"constraint #{gap.constraint} wants {_count(gap.wanted, 'device')}"
    match gap.kind:
        case "match" if gap.values and gap.best >= gap.wanted:
            only = f"{gap.values[0].value} would do, but not beside the other requests and constraints"
            return f"{wants} with one {gap.text}; {only}."
        case "match" if gap.values:
            return f"{wants} with one {gap.text}; the best value, {gap.values[0].value}, gives {gap.best}."
        case "match":
            return f"{wants} with one {gap.text}; no device has that attribute."
        case "distinct":
            found = f"there {'is' if gap.best == 1 else 'are'} only {_count(gap.best, 'value')}"
            return f"{wants}, each with another {gap.text}; {found}."
        case _:
            sets = f"{'the first ' if gap.best >= MOST_SETS else ''}{_count(gap.best, 'set')}"
            return f"constraint #{gap.constraint} holds for none of {sets} of {_count(gap.wanted, 'device')}."


def _gap_lines(gap: ConstraintGap) -> Iterator[str | _Long]:
    if gap.kind == "cel":
        text = gap.closest.condition if gap.closest else gap.text
        yield _Long(shorten(text, 4 * WIDTH), "  fails: ", "    ")
        if gap.closest is not None:
            yield _Long(_closest(gap), "  closest: ", "    ")
    width = max((len(each.value) for each in gap.values[:MOST_VALUES]), default=0)
    for each in gap.values[:MOST_VALUES]:
        yield f"  {each.value:<{width}}  {_fillings(each)}"
    if len(gap.values) > MOST_VALUES:
        yield f"  and {len(gap.values) - MOST_VALUES} more values"
    if gap.without:
        yield f"  {_count(gap.without, 'device')} without the attribute"
    for hint in gap.hints:
        yield _Long(_hint(hint), "  ", "    ")


def _closest(gap: ConstraintGap) -> str:
    if gap.closest is None:
        return ""
    return ", ".join(gap.closest.devices) + (f" ({gap.closest.miss})" if gap.closest.miss else "")


def _fillings(count: ValueCount) -> str:
    if len(count.fillings) == 1:
        return f"{count.fillings[0].available} of {count.fillings[0].wanted}"
    return ", ".join(f"{filling.request}: {filling.available} of {filling.wanted}" for filling in count.fillings)


def _change(change: Change) -> str:
    number = f"{'at least ' if change.may_be_more else ''}{_count(change.nodes, 'node')}"
    where = f"(on {change.example if change.nodes == 1 and not change.may_be_more else number})"
    return f"{change.text} {where.replace(' ', _NO_BREAK)}"


# In one line


def summary_line(explanation: Explanation) -> str:
    """What is missing, where the least is missing, and what would help."""
    return "; ".join(summary_parts(explanation))


def summary_parts(explanation: Explanation) -> list[str]:
    """The same in one or two parts: what is missing, and what would help."""
    if explanation.fits:
        return [f"fits on {explanation.fitting} of {_count(explanation.nodes, 'node')}"]
    if not explanation.groups:
        return ["there are no nodes"]
    parts = [_summary(explanation.groups[0], explanation)]
    if explanation.changes:
        parts.append(f"it would fit {_change(explanation.changes[0])}")
    return [part.replace(_NO_BREAK, " ") for part in parts]


def _summary(group: GroupReason, explanation: Explanation) -> str:
    nodes = explanation.nodes
    best = group.nodes[0] if nodes == 1 else f"the best of {nodes} nodes ({group.nodes[0]})"
    match group.obstacle:
        case Obstacle.ERROR:
            return _error_summary(group)
        case Obstacle.REQUEST:
            count = group.blocked[0]
            stage = count.bottleneck
            wants = _request_needs(count, len(explanation.claims) > 1)
            notes = [_hint(hint) for hint in stage.hints[:1]]
            if stage.stage <= Stage.CLASS:
                notes += [f"pool {problem.pool} {problem.reason}" for problem in group.pools[:1]]
            note = f" ({'; '.join(notes)})" if notes else ""
            return f"{wants}, {best} has {stage.left or 'none'}{_SUMMARIES[stage.stage]}{note}"
        case Obstacle.CONSTRAINT if group.gap is not None:
            return _gap_summary(group.gap, best)
        case _:
            return f"on {group.nodes[0]}, {_competition(group, len(explanation.claims) > 1)}: {group.detail}"


def _error_summary(group: GroupReason) -> str:
    error = group.error
    hints = [hint for count in group.requests for stage in count.stages for hint in stage.hints]
    if isinstance(error, SelectorFailed) and hints and error.device is not None:
        return f"request {error.request}: selector #{error.index} fails: {error.cause} ({_hint(hints[0])})"
    if isinstance(error, ClassMissing):
        meant = f" ({group.detail})" if group.detail else ""
        return f"request {error.request}: there is no device class {error.class_name}{meant}"
    return shorten(_error_text(group), 400)


_SUMMARIES: Final = {
    Stage.SEEN: "",
    Stage.CLASS: "",
    Stage.SELECTORS: " that its selectors accept",
    Stage.ENABLED: " that can be used",
    Stage.CAPACITY: " with enough capacity",
    Stage.UNTAINTED: " without taint",
    Stage.FREE: " free",
    Stage.ROOM: " with room left",
}


def _gap_summary(gap: ConstraintGap, best: str) -> str:
    match gap.kind:
        case "match":
            has = f"{gap.best} free with {gap.values[0].value}" if gap.values else "none that has it"
            return f"needs {_count(gap.wanted, 'device')} with one {gap.text}, {best} has {has}"
        case "distinct":
            wants = f"{_count(gap.wanted, 'device')} with different {gap.text}"
            return f"needs {wants}, {best} has {_count(gap.best, 'value')}"
        case _:
            closest = f", closest is {_closest(gap)}" if gap.closest else ""
            wants = f"{_count(gap.wanted, 'device')} that satisfy constraint #{gap.constraint}"
            return f"needs {wants}, {best} has none{closest}"


# Words


def _wanted(count: RequestCount) -> str:
    return "all devices" if count.wanted is None else _count(count.wanted, "device")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _listing(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _nodes(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    return f"each of {len(names)} nodes ({', '.join(names[:3])}{', …' if len(names) > 3 else ''})"
