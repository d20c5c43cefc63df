from __future__ import annotations

from typing import Any

import pytest

from dray.api.errors import BadRequest, Conflict
from dray.api.meta import Json
from dray.apiserver.apply import apply_configuration
from dray.apiserver.managed_fields import (
    APPLY,
    MAX_UPDATE_MANAGERS,
    Managers,
    Writer,
    read_managers,
    track_update,
    write_managers,
)


class World:
    """A pod, and who set what in it. Every write goes by one second after the last."""

    def __init__(self) -> None:
        self.obj: Json = {}
        self.managers: Managers = {}
        self._seconds = 0

    def _writer(self, name: str) -> Writer:
        self._seconds += 1
        return Writer(name, "v1", "", f"2026-01-01T00:00:{self._seconds:02}Z", "", "Pod")

    def apply(self, who: str, spec: Json, *, force: bool = False, **metadata: Any) -> None:
        config: Json = {"metadata": metadata, "spec": spec}
        self.obj, self.managers = apply_configuration(
            self.obj, config, self.managers, self._writer(who), self._same, force=force, reset={"f:status": {}}
        )

    def update(self, who: str, obj: Json) -> None:
        self.managers = track_update(self.obj or None, obj, self.managers, self._writer(who), self._same, reset={})
        self.obj = obj

    @staticmethod
    def _same(obj: Json, api_version: str) -> Json:
        return obj

    def owned_by(self, who: str) -> Json:
        return next((manager.fields for manager in self.managers.values() if manager.key.manager == who), {})


def container(name: str, **fields: Any) -> Json:
    return {"name": name, **fields}


def test_an_applier_owns_what_it_lists() -> None:
    world = World()
    world.apply("a", {"containers": [container("c", image="x")]}, labels={"k": "v"})
    assert world.owned_by("a") == {
        "f:metadata": {"f:labels": {"f:k": {}}},
        "f:spec": {"f:containers": {'k:{"name":"c"}': {".": {}, "f:image": {}, "f:name": {}}}},
    }


def test_what_an_applier_no_longer_lists_goes_away() -> None:
    world = World()
    world.apply("a", {"containers": [container("c", image="x"), container("d", image="y")], "nodeName": "n"})
    world.apply("a", {"containers": [container("c", image="x")]})
    assert world.obj["spec"] == {"containers": [container("c", image="x")]}


def test_what_someone_else_owns_stays() -> None:
    world = World()
    world.apply("a", {"containers": [container("c", image="x")], "nodeName": "n"})
    world.apply("b", {"nodeName": "n"})
    world.apply("a", {"containers": [container("c", image="x")]})
    assert world.obj["spec"]["nodeName"] == "n"
    world.apply("b", {})
    assert "nodeName" not in world.obj["spec"]


def test_a_list_item_stays_as_long_as_someone_owns_a_field_in_it() -> None:
    world = World()
    world.apply("a", {"containers": [container("c", image="x", workingDir="/")]})
    world.apply("b", {"containers": [container("c", image="x")]})
    world.apply("a", {})
    assert world.obj["spec"]["containers"] == [container("c", image="x")]


def test_another_value_for_an_owned_field_is_a_conflict() -> None:
    world = World()
    world.apply("a", {"containers": [container("c", image="x")], "nodeName": "n"})
    with pytest.raises(Conflict) as caught:
        world.apply("b", {"containers": [container("c", image="y")], "nodeName": "m"})
    causes = {(cause["field"], cause["message"]) for cause in caught.value.details["causes"]}
    assert causes == {
        ('.spec.containers[name="c"].image', 'conflict with "a"'),
        (".spec.nodeName", 'conflict with "a"'),
    }
    assert caught.value.message.startswith('Apply failed with 2 conflicts: conflicts with "a":\n- .spec.containers')


def test_force_takes_the_field_over() -> None:
    world = World()
    world.apply("a", {"nodeName": "n", "hostname": "h"})
    world.apply("b", {"nodeName": "m"}, force=True)
    assert world.obj["spec"] == {"nodeName": "m", "hostname": "h"}
    assert world.owned_by("a") == {"f:spec": {"f:hostname": {}}}


def test_the_same_value_is_no_conflict_and_both_own_it() -> None:
    world = World()
    world.apply("a", {"nodeName": "n"})
    world.apply("b", {"nodeName": "n"})
    assert world.owned_by("a") == world.owned_by("b") == {"f:spec": {"f:nodeName": {}}}


def test_an_update_takes_fields_silently_and_loses_what_it_removes() -> None:
    world = World()
    world.apply("a", {"nodeName": "n", "hostname": "h"})
    world.update("u", {**world.obj, "spec": {"nodeName": "m"}})
    assert world.owned_by("u") == {"f:spec": {"f:nodeName": {}}}
    assert world.owned_by("a") == {}
    with pytest.raises(Conflict, match='conflict with "u" using v1'):
        world.apply("a", {"nodeName": "n"})


def test_an_update_that_changes_nothing_owns_nothing() -> None:
    world = World()
    world.apply("a", {"nodeName": "n"})
    before = write_managers(world.managers)
    world.update("u", dict(world.obj))
    assert write_managers(world.managers) == before


def test_sets_merge_and_atomic_lists_are_owned_whole() -> None:
    world = World()
    world.apply("a", {"tolerations": [{"key": "x"}]}, finalizers=["e.com/a"])
    world.apply("b", {}, finalizers=["e.com/b"])
    assert world.obj["metadata"]["finalizers"] == ["e.com/a", "e.com/b"]
    assert world.owned_by("a")["f:spec"] == {"f:tolerations": {}}
    world.apply("a", {"tolerations": [{"key": "x"}]})
    assert world.obj["metadata"]["finalizers"] == ["e.com/b"]


def test_the_name_stays_when_nothing_else_of_the_metadata_is_applied() -> None:
    world = World()
    world.apply("a", {"nodeName": "n"}, name="p", finalizers=["e.com/a"])
    world.apply("a", {"nodeName": "n"}, name="p")
    assert world.obj["metadata"] == {"name": "p"}


def test_two_items_with_one_key_cannot_be_applied() -> None:
    with pytest.raises(BadRequest, match="duplicate entries for key"):
        World().apply("a", {"containers": [container("c"), container("c")]})


def test_identity_and_bookkeeping_are_nobodys() -> None:
    world = World()
    world.update("u", {"kind": "Pod", "metadata": {"name": "p", "uid": "1", "generation": 3, "labels": {"a": "b"}}})
    assert world.owned_by("u") == {"f:metadata": {"f:labels": {".": {}, "f:a": {}}}}


def test_managers_survive_being_written_and_read() -> None:
    world = World()
    world.apply("a", {"nodeName": "n"})
    world.update("u", {**world.obj, "spec": {"nodeName": "n", "hostname": "h"}})
    entries = write_managers(world.managers)
    assert [entry["operation"] for entry in entries] == [APPLY, "Update"]
    again = read_managers({"metadata": {"managedFields": entries}})
    assert again is not None
    assert write_managers(again) == entries


def test_entries_that_cannot_be_read_count_as_none() -> None:
    assert read_managers({"metadata": {"managedFields": [{"operation": "Guess"}]}}) is None


def test_many_updaters_are_summed_up() -> None:
    world = World()
    for number in range(MAX_UPDATE_MANAGERS + 3):
        labels = {**world.obj.get("metadata", {}).get("labels", {}), f"l{number}": "x"}
        world.update(f"u{number}", {"metadata": {"labels": labels}})
    names = {manager.key.manager for manager in world.managers.values()}
    assert len(names) <= MAX_UPDATE_MANAGERS
    assert "ancient-changes" in names
