"""CDI files as container runtimes would check them, against the schema of the specification."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from dray.api.cdi import ContainerEdits, DeviceNode, Hook, Mount
from dray.cluster.inventories import MODELS
from dray.cluster.simulated import SimulatedDriver
from dray.driver.cdi import CdiFiles
from dray.testing.drivers import run_driver

SCHEMA = json.loads((Path(__file__).parent / "cdi_schema.json").read_text())


def check(path: Path) -> None:
    jsonschema.validate(json.loads(path.read_text()), SCHEMA)


def test_a_file_with_everything_fits_the_schema(tmp_path: Path) -> None:
    files = CdiFiles(tmp_path, vendor="gpu.example.com")
    node = DeviceNode(
        path="/dev/gpu0", host_path="/dev/null", type="c", major=1, minor=3, permissions="rw", uid=0, gid=0
    )
    mount = Mount(host_path="/opt", container_path="/opt", options=("ro", "bind"))
    hook = Hook(hook_name="createContainer", path="/bin/true", args=("true",), env=("A=b",), timeout=5)
    edits = ContainerEdits(env=("GPU=0",), device_nodes=(node,), mounts=(mount,), hooks=(hook,))
    files.write("uid-1", {"gpu-0": edits, "gpu-1": ContainerEdits(env=("GPU=1",))})
    check(files.path("uid-1"))


@pytest.mark.parametrize("model", ["a100-8", "acme", "mig-a100", "grid", "sriov"])
async def test_files_of_simulated_drivers_fit_the_schema(model: str, tmp_path: Path) -> None:
    (driver_model, *_) = MODELS[model].make_node(0).drivers
    async with run_driver(SimulatedDriver(driver_model, "node-1", tmp_path)) as node:
        await node.prepare(*(device.name for device in driver_model.devices[:3]))
        (file,) = node.cdi_files
        check(file)


@pytest.mark.parametrize(
    "broken",
    [
        {"kind": "no class", "cdiVersion": "0.6.0", "devices": [{"name": "a", "containerEdits": {}}]},
        {"kind": "a.com/b", "cdiVersion": "0.6.0", "devices": []},
        {"kind": "a.com/b", "cdiVersion": "0.6.0", "devices": [{"name": "-a", "containerEdits": {}}]},
        {"kind": "a.com/b", "cdiVersion": "0.6.0", "devices": [{"name": "a", "containerEdits": {"env": ["X"]}}]},
    ],
)
def test_the_schema_is_not_content_with_everything(broken: object) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, SCHEMA)
