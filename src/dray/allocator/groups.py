"""Nodes in groups that a program can't tell apart, kept up to date change by change.

The groups as they were at some time are frozen and shared by all forks; what has moved since then is kept beside them,
and when that grows to a good part of all nodes, the groups are frozen anew.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple

from dray.allocator.inventory import Touched

GroupKey = Hashable
FindKey = Callable[[str], GroupKey | None]
"""The group that a node belongs to now; None: the node is gone."""

MOVED_AT_LEAST: Final = 256
MOVED_PART: Final = 8
"""The groups are frozen anew when one node in so many has moved, but not before `MOVED_AT_LEAST` have."""


class NodeGroup:
    """Some nodes that look the same: those of a list, but for a few. Valid until the next change."""

    __slots__ = ("_listed", "_start", "_without")

    def __init__(self, listed: Collection[str], without: Collection[str] = (), start: int = 0) -> None:
        """`start`: so many at the beginning of the list are among those that don't count."""
        self._listed = listed
        self._without = without
        self._start = start

    def __iter__(self) -> Iterator[str]:
        if not self._without:
            return iter(self._listed)
        return (name for name in islice(self._listed, self._start, None) if name not in self._without)

    def __len__(self) -> int:
        return len(self._listed) - len(self._without)

    @property
    def first(self) -> str:
        return next(iter(self))


class _Frozen(NamedTuple):
    groups: dict[GroupKey, list[str]]
    keys: dict[str, GroupKey]


class Grouping:
    def __init__(self) -> None:
        self._frozen = _Frozen({}, {})
        self._moved: dict[str, GroupKey | None] = {}
        self._left: dict[GroupKey, set[str]] = {}
        self._joined: dict[GroupKey, dict[str, None]] = {}
        self._starts: dict[GroupKey, int] = {}
        self._is_shared = False
        """Whether a fork uses the same dicts of moves; then they are copied before they are changed."""
        self._stale: set[str] = set()
        self._all_stale = True

    def fork(self) -> Grouping:
        other = Grouping()
        other._frozen = self._frozen
        other._moved, other._left, other._joined = self._moved, self._left, self._joined
        other._starts = dict(self._starts)
        other._stale = set(self._stale)
        other._all_stale = self._all_stale
        self._is_shared = other._is_shared = True
        return other

    def touch(self, nodes: Touched) -> None:
        """These nodes may belong to another group now."""
        if nodes is None:
            self._all_stale = True
        else:
            self._stale |= nodes

    def refresh(self, names: Callable[[], Iterator[str]], find_key: FindKey) -> None:
        """Put every node that was touched into its group."""
        if self._all_stale:
            self._freeze((name, find_key(name)) for name in names())
        elif self._stale:
            self._own_moves()
            for name in self._stale:
                self._move(name, find_key(name))
            if len(self._moved) >= max(MOVED_AT_LEAST, len(self._frozen.keys) // MOVED_PART):
                keys = {**self._frozen.keys, **self._moved}
                self._freeze(keys.items())
        self._stale.clear()

    def __iter__(self) -> Iterator[tuple[GroupKey, NodeGroup]]:
        for key, nodes in self._frozen.groups.items():
            left = self._left.get(key)
            if not left:
                yield key, NodeGroup(nodes)
            elif len(left) < len(nodes):
                yield key, NodeGroup(nodes, left, self._start(key, nodes, left))
        for key, joined in self._joined.items():
            if joined:
                yield key, NodeGroup(joined)

    def _start(self, key: GroupKey, nodes: list[str], left: set[str]) -> int:
        """How many at the beginning of the list have left. Nodes fill up in order, so it is found step by step."""
        start = self._starts.get(key, 0)
        while nodes[start] in left:
            start += 1
        self._starts[key] = start
        return start

    def _freeze(self, keys: Iterable[tuple[str, GroupKey | None]]) -> None:
        groups: dict[GroupKey, list[str]] = {}
        by_name: dict[str, GroupKey] = {}
        for name, key in keys:
            if key is not None:
                groups.setdefault(key, []).append(name)
                by_name[name] = key
        self._frozen = _Frozen(groups, by_name)
        self._moved, self._left, self._joined, self._starts = {}, {}, {}, {}
        self._is_shared = self._all_stale = False

    def _own_moves(self) -> None:
        if self._is_shared:
            self._moved = dict(self._moved)
            self._left = {key: set(names) for key, names in self._left.items()}
            self._joined = {key: dict(names) for key, names in self._joined.items()}
            self._is_shared = False

    def _move(self, name: str, key: GroupKey | None) -> None:
        home = self._frozen.keys.get(name)
        before = self._moved.get(name, home)
        if before == key:
            return
        if before is not None and before != home:
            del self._joined[before][name]
            if not self._joined[before]:
                del self._joined[before]
        elif before is not None:
            self._left.setdefault(before, set()).add(name)
        if key == home:
            self._moved.pop(name, None)
            if home is not None:
                self._left[home].discard(name)
                self._starts.pop(home, None)
            return
        self._moved[name] = key
        if key is not None:
            self._joined.setdefault(key, {})[name] = None
