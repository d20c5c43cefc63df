"""`dray allocate`, `dray explain` and `dray verify`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from dray.cli.main import app

CLASS = """\
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.example.com}
spec:
  selectors:
  - cel: {expression: 'device.driver == "gpu.example.com"'}
"""

SLICE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: NODE-gpu}
spec:
  driver: gpu.example.com
  nodeName: NODE
  pool: {name: NODE, generation: 1, resourceSliceCount: 1}
  devices:
  - name: gpu-0
  - name: gpu-1
"""

CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: NAME}
spec:
  devices:
    requests:
    - name: gpu
      exactly: {deviceClassName: gpu.example.com, count: COUNT}
"""

TEMPLATE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: two-gpus}
spec:
  spec:
    devices:
      requests:
      - name: gpu
        exactly: {deviceClassName: gpu.example.com, count: 2}
"""

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: POD}
spec:
  containers: [{name: c, image: i}]
  resourceClaims:
  - {name: mine, resourceClaimTemplateName: two-gpus}
  - {name: shared, resourceClaimName: one}
"""


def make_slice(node: str) -> str:
    return SLICE.replace("NODE", node)


def make_claim(name: str, count: int = 1) -> str:
    return CLAIM.replace("NAME", name).replace("COUNT", str(count))


def dray(command: str, *documents: str, options: tuple[str, ...] = ()) -> Result:
    """Runs the command on documents from standard input."""
    return CliRunner().invoke(app, [command, "-f", "-", *options], input="---\n".join(documents))


def rows(result: Result) -> list[list[str]]:
    return [line.split() for line in result.stdout.splitlines()[1:]]


CLUSTER = (CLASS, make_slice("node-1"), make_slice("node-2"))


def test_claims_get_devices_one_after_the_other() -> None:
    result = dray("allocate", *CLUSTER, make_claim("one"), make_claim("two"), make_claim("three", 2))
    assert result.exit_code == 0
    assert rows(result) == [
        ["default/one", "node-1", "gpu", "gpu.example.com/node-1/gpu-0"],
        ["default/two", "node-1", "gpu", "gpu.example.com/node-1/gpu-1"],
        ["default/three", "node-2", "gpu", "gpu.example.com/node-2/gpu-0"],
        ["gpu", "gpu.example.com/node-2/gpu-1"],
    ]


def test_a_node_can_be_chosen() -> None:
    result = dray("allocate", *CLUSTER, make_claim("one"), options=("--node", "node-2"))
    assert rows(result)[0][1] == "node-2"
    result = dray("allocate", *CLUSTER, make_claim("one"), options=("--node", "node-9"))
    assert result.exit_code == 2
    assert "there is no node node-9, only node-1, node-2" in result.stderr


def test_what_does_not_fit_is_explained() -> None:
    result = dray("allocate", *CLUSTER, make_claim("one", 3), make_claim("two"))
    assert result.exit_code == 3
    assert rows(result)[0][0] == "default/two"
    assert "Claim default/one does not fit on any of 2 nodes." in result.stderr
    assert "with count 2 instead of 3 in request gpu (on 2 nodes)" in result.stderr


@pytest.mark.parametrize("command", ["allocate", "verify"])
def test_objects_that_no_cluster_would_store_are_refused(command: str) -> None:
    result = dray(command, *CLUSTER, make_claim("one", -3), make_claim("Two"))
    assert (result.exit_code, result.stdout) == (2, "")
    refusals = result.stderr.splitlines()
    assert "ResourceClaim one: spec.devices.requests[0].exactly.count: Invalid value: -3" in refusals[0]
    assert "ResourceClaim Two: metadata.name: Invalid value" in refusals[1]


def test_unknown_fields_are_told_and_ignored() -> None:
    result = dray("allocate", *CLUSTER, make_claim("one").replace("count:", "cuont: 3, count:"))
    assert result.exit_code == 0
    assert 'unknown field "spec.devices.requests[0].exactly.cuont" (ignored)' in result.stderr


def test_a_count_beyond_all_measure_is_explained_at_once() -> None:
    result = dray("allocate", *CLUSTER, make_claim("one", 2**63 - 1))
    assert result.exit_code == 3
    assert f"with count 2 instead of {2**63 - 1}" in result.stderr


@pytest.mark.parametrize("format", ["yaml", "json"])
def test_claims_are_written_with_their_allocation(format: str) -> None:
    result = dray("allocate", *CLUSTER, make_claim("one"), options=("-o", format))
    written = yaml.safe_load(result.stdout) if format == "yaml" else json.loads(result.stdout)
    assert written["metadata"] == {"name": "one", "namespace": "default"}
    (device,) = written["status"]["allocation"]["devices"]["results"]
    assert device == {"request": "gpu", "driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"}


def test_written_claims_can_be_read_again_and_verified() -> None:
    first = dray("allocate", *CLUSTER, make_claim("one"), make_claim("two"), options=("-o", "yaml"))
    verified = dray("verify", *CLUSTER, first.stdout)
    assert (verified.exit_code, verified.stdout) == (0, "")
    assert "2 allocated claims checked, 0 violations" in verified.stderr
    more = dray("allocate", *CLUSTER, first.stdout, make_claim("three"))
    assert [row[1] for row in rows(more)] == ["node-2"]
    none = dray("allocate", *CLUSTER, first.stdout)
    assert (none.exit_code, none.stdout) == (0, "")
    assert "no pending claim" in none.stderr


def test_a_device_that_two_claims_have_is_a_violation() -> None:
    first = dray("allocate", *CLUSTER, make_claim("one"), options=("-o", "yaml")).stdout
    thief = first.replace("name: one", "name: thief")
    result = dray("verify", *CLUSTER, first, thief)
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "claim default/thief, request gpu, device gpu.example.com/node-1/gpu-0: in use twice: "
        "claim default/one, request gpu has it too"
    ]
    gone = dray("verify", CLASS, first)
    assert gone.exit_code == 1
    assert dray("verify", CLASS, first, options=("--lasting",)).exit_code == 0


def test_the_claims_of_a_pod_go_to_one_node() -> None:
    pod = POD.replace("POD", "trainer")
    result = dray("allocate", CLASS, *(make_slice(f"node-{n}") for n in (1, 2)), TEMPLATE, make_claim("one", 1), pod)
    assert result.exit_code == 3
    assert "Claims default/trainer-mine and default/one do not fit together" in result.stderr
    third = make_slice("node-3") + "  - name: gpu-2\n"
    result = dray("allocate", *CLUSTER, third, TEMPLATE, make_claim("one", 1), pod)
    assert [row[:2] for row in rows(result) if len(row) == 4] == [
        ["default/trainer-mine", "node-3"],
        ["default/one", "node-3"],
    ]


def test_a_pod_goes_where_its_other_claims_are() -> None:
    taken = dray("allocate", *CLUSTER, make_claim("one"), options=("-o", "yaml", "--node", "node-2")).stdout
    template = TEMPLATE.replace("count: 2", "count: 1")
    result = dray("allocate", *CLUSTER, taken, template, POD.replace("POD", "trainer"))
    assert [row[:2] for row in rows(result)] == [["default/trainer-mine", "node-2"]]


def test_a_template_without_a_pod_stands_for_a_claim() -> None:
    assert rows(dray("allocate", *CLUSTER, TEMPLATE))[0][0] == "default/two-gpus"


def test_nodes_say_what_they_are_if_they_are_given() -> None:
    slice_ = make_slice("node-1").replace(
        "nodeName: node-1",
        "nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [a]}]}]}",
    )
    node = "apiVersion: v1\nkind: Node\nmetadata: {name: NAME, labels: {zone: ZONE}}\n"
    nodes = [node.replace("NAME", name).replace("ZONE", zone) for name, zone in (("far", "b"), ("near", "a"))]
    assert rows(dray("allocate", CLASS, slice_, *nodes, make_claim("one")))[0][1] == "near"
    assert dray("allocate", CLASS, slice_, nodes[0], make_claim("one")).exit_code == 3


def test_taint_rules_are_obeyed() -> None:
    rule = """\
apiVersion: resource.k8s.io/v1beta2
kind: DeviceTaintRule
metadata: {name: broken}
spec:
  deviceSelector: {driver: gpu.example.com, pool: node-1}
  taint: {key: broken, effect: NoSchedule}
"""
    assert rows(dray("allocate", *CLUSTER, rule, make_claim("one")))[0][1] == "node-2"
    off = ("--feature-gates", "DRADeviceTaintRules=false")
    assert rows(dray("allocate", *CLUSTER, rule, make_claim("one"), options=off))[0][1] == "node-1"


def test_what_can_not_be_read_ends_the_command() -> None:
    result = dray("allocate", CLASS, make_claim("one").replace("count: 1", "count: x"))
    assert result.exit_code == 2
    assert "ResourceClaim one: spec.devices.requests[0].exactly.count: " in result.stderr
    assert dray("allocate", "a: [").exit_code == 2
    assert CliRunner().invoke(app, ["verify", "-f", "/does/not/exist"]).exit_code == 2


def test_shares_are_shown() -> None:
    slice_ = make_slice("node-1").replace(
        "  - name: gpu-0\n",
        "  - name: gpu-0\n    allowMultipleAllocations: true\n    capacity: {memory: {value: 40Gi}}\n",
    )
    claim = make_claim("one").replace("count: 1", "count: 1, capacity: {requests: {memory: 10Gi}}")
    (row,) = rows(dray("allocate", CLASS, slice_, claim))
    assert row[-1] == "memory=10Gi"


# dray explain


def explain(*documents: str, name: str = "claim/one", options: tuple[str, ...] = ()) -> Result:
    return dray("explain", *documents, options=(name, *options))


def test_one_claim_is_explained() -> None:
    result = explain(*CLUSTER, make_claim("one", 3), make_claim("two"))
    assert result.exit_code == 3
    assert result.stdout.startswith("Claim default/one does not fit on any of 2 nodes.")
    assert explain(*CLUSTER, make_claim("one")).stdout == "Claim default/one fits on 2 of 2 nodes.\n"
    one_node = explain(*CLUSTER, make_claim("one", 3), options=("--node", "node-2"))
    assert one_node.stdout.startswith("Claim default/one does not fit on the only node.\n\nnode-2: ")


def test_names_are_found_with_and_without_namespace() -> None:
    other = make_claim("one").replace("{name: one}", "{name: one, namespace: lab}")
    assert explain(*CLUSTER, make_claim("one"), other, name="claim/lab/one").exit_code == 0
    ambiguous = explain(*CLUSTER, make_claim("one"), other, name="one")
    assert ambiguous.exit_code == 2
    assert "there are several: claim default/one, claim lab/one" in ambiguous.stderr


def test_unknown_names_are_refused_with_those_that_there_are() -> None:
    missing = explain(*CLUSTER, make_claim("one"), name="claim/two")
    assert (missing.exit_code, missing.stderr) == (
        2,
        "claim/two: no such claim waits for devices; pending are claim default/one\n",
    )
    assert "expected claim/NAME or pod/NAME" in explain(*CLUSTER, name="node/x").stderr
    done = dray("allocate", *CLUSTER, make_claim("one"), options=("-o", "yaml")).stdout
    assert "has its devices already" in explain(*CLUSTER, done).stderr


def test_a_pod_is_explained_with_all_its_claims() -> None:
    pod = POD.replace("POD", "trainer")
    result = explain(*CLUSTER, TEMPLATE, make_claim("one"), pod, name="pod/trainer")
    assert result.stdout.startswith(
        "Claims default/trainer-mine and default/one do not fit together on any of 2 nodes."
    )


def test_the_explanation_comes_as_a_line_or_as_data() -> None:
    line = explain(*CLUSTER, make_claim("one", 3), options=("-o", "line")).stdout
    assert line.startswith("request gpu needs 3 devices of class gpu.example.com, the best of 2 nodes (node-1) has 2; ")
    data = json.loads(explain(*CLUSTER, make_claim("one", 3), options=("-o", "json")).stdout)
    assert (data["claims"], data["nodes"], data["fitting"]) == (["default/one"], 2, 0)
    (group,) = data["groups"]
    assert (group["obstacle"], group["nodes"]) == ("request", ["node-1", "node-2"])
    assert group["requests"][0]["stages"][1] == {"stage": "class", "left": 2, "rejects": 0}
    assert data["changes"][0]["kind"] == "count"


def test_an_error_is_data_too() -> None:
    missing = make_claim("one").replace("gpu.example.com", "gpus.example.com")
    data = json.loads(explain(*CLUSTER, missing, options=("-o", "json")).stdout)
    assert data["groups"][0]["error"].endswith("could not retrieve device class gpus.example.com: not found")


def test_files_and_folders_are_read(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text("---\n".join(CLUSTER))
    (tmp_path / "claim.json").write_text(json.dumps(yaml.safe_load(make_claim("one"))))
    result = CliRunner().invoke(app, ["allocate", "-f", str(tmp_path)])
    assert rows(result)[0][0] == "default/one"
