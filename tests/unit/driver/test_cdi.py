"""CDI files: whole, named by claim, gone with it."""

from __future__ import annotations

import json
from pathlib import Path

from dray.api.cdi import ContainerEdits, DeviceNode, Hook, Mount
from dray.driver.cdi import CdiFiles


def test_a_claims_file_lists_its_devices_with_their_edits(tmp_path: Path) -> None:
    files = CdiFiles(tmp_path / "cdi", vendor="gpu.example.com")
    edits = ContainerEdits(
        env=("GPU=0",),
        device_nodes=(DeviceNode(path="/dev/gpu0"),),
        mounts=(Mount(host_path="/opt", container_path="/opt"),),
        hooks=(Hook(hook_name="createContainer", path="/bin/true"),),
    )
    names = files.write("uid-1", {"gpu-0": edits})
    assert names == {"gpu-0": "gpu.example.com/device=gpu-0"}
    spec = json.loads(files.path("uid-1").read_text())
    assert spec["kind"] == "gpu.example.com/device"
    (device,) = spec["devices"]
    assert device["containerEdits"]["deviceNodes"] == [{"path": "/dev/gpu0"}]
    assert device["containerEdits"]["hooks"] == [{"hookName": "createContainer", "path": "/bin/true"}]


def test_files_are_found_by_claim_and_removed_with_it(tmp_path: Path) -> None:
    files = CdiFiles(tmp_path, vendor="gpu.example.com")
    files.write("uid-1", {"a": ContainerEdits(env=("A=1",))})
    files.write("uid-2", {"b": ContainerEdits(env=("B=1",))})
    files.remove("uid-1")
    assert files.claim_uids() == {"uid-2"}
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
