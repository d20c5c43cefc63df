"""What a node holds: known again after a restart, and found by pod and by request."""

from __future__ import annotations

from pathlib import Path

import pytest

from dray.node.checkpoint import Checkpoint, DamagedCheckpoint, HeldClaim, HeldDevice


def held(uid: str = "uid-1", *pods: str, devices: tuple[HeldDevice, ...] = ()) -> HeldClaim:
    return HeldClaim(
        namespace="default",
        name=f"claim-{uid}",
        uid=uid,
        pods=frozenset(pods or {"pod-1"}),
        drivers=("d",),
        devices=devices,
    )


def test_claims_survive_a_restart_until_they_are_removed(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path)
    checkpoint.put(held())
    assert Checkpoint(tmp_path).get("uid-1") == held()
    checkpoint.remove("uid-1")
    assert Checkpoint(tmp_path).claims == []


def test_claims_are_found_by_pod_and_name(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path)
    checkpoint.put(held("uid-1", "pod-1", "pod-2"))
    checkpoint.put(held("uid-2", "pod-2"))
    assert [claim.uid for claim in checkpoint.used_by("pod-2")] == ["uid-1", "uid-2"]
    assert checkpoint.find("default", "claim-uid-2", "pod-2") == held("uid-2", "pod-2")
    assert checkpoint.find("default", "claim-uid-2", "pod-1") is None


def test_a_damaged_file_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "uid-9.json").write_text("{")
    with pytest.raises(DamagedCheckpoint, match=r"uid-9.json can't be read .* drain the node"):
        Checkpoint(tmp_path)


@pytest.mark.parametrize(
    ("request_name", "expected"),
    [("", ["id-a", "id-b", "id-all"]), ("a", ["id-a", "id-all"]), ("b", ["id-b", "id-all"]), ("c", ["id-all"])],
)
def test_devices_belong_to_the_requests_that_they_name_or_to_all(request_name: str, expected: list[str]) -> None:
    devices = (
        HeldDevice(driver="d", requests=("a",), pool="p", device="1", cdi_device_ids=("id-a",)),
        HeldDevice(driver="d", requests=("b/sub",), pool="p", device="2", cdi_device_ids=("id-b",)),
        HeldDevice(driver="d", requests=(), pool="p", device="3", cdi_device_ids=("id-all",)),
    )
    assert held(devices=devices).cdi_device_ids(request_name) == expected
