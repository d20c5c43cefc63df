"""`dray validate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from dray.cli.main import app
from dray.cli.sources import MAX_FILE

CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: my-claim
  namespace: here
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu.example.com
"""


def validate(*files: str | Path, stdin: str | None = None, options: tuple[str, ...] = ()) -> Result:
    arguments = [argument for file in files for argument in ("-f", str(file))]
    return CliRunner().invoke(app, ["validate", *arguments, *options], input=stdin)


@pytest.fixture
def manifest(tmp_path: Path) -> Any:
    def write(text: str, name: str = "manifest.yaml") -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    return write


def expect_problems(result: Result, *problems: str) -> None:
    """Each is a line of the output, from the line number on."""
    assert [line.partition(".yaml:")[2] for line in result.stdout.splitlines()] == list(problems)
    assert result.exit_code == 1


def test_a_good_manifest_passes_silently(manifest: Any) -> None:
    result = validate(manifest(CLAIM))
    assert (result.exit_code, result.stdout) == (0, "")
    assert "1 object checked, 0 problems" in result.stderr


def test_a_problem_names_file_line_object_field_and_reason(manifest: Any) -> None:
    path = manifest(CLAIM.replace("name: gpu\n", "name: GPU\n"))
    (line,) = validate(path).stdout.splitlines()
    assert line.startswith(f"{path}:9: ResourceClaim here/my-claim: spec.devices.requests[0].name: Invalid value: ")


def test_wrong_types_are_explained(manifest: Any) -> None:
    expect_problems(
        validate(manifest(CLAIM + "        count: lots\n")),
        "12: ResourceClaim here/my-claim: spec.devices.requests[0].exactly.count: expected a whole number, found text",
    )


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("name: n\n", "expected text, found true or false; in YAML, text that looks like something else needs quotes"),
        ("name: 5\n", "expected text, found a number; in YAML, text that looks like something else needs quotes"),
        ("name: [a]\n", "expected text, found a list"),
        ("name: gpu\n      firstAvailable: {}\n", "expected a list, found an object"),
        ("name: gpu\n      firstAvailable: [no]\n", "expected an object, found true or false"),
    ],
)
def test_what_was_expected_is_said_in_plain_words(manifest: Any, written: str, reason: str) -> None:
    result = validate(manifest(CLAIM.replace("name: gpu\n", written)))
    assert result.stdout.strip().endswith(f": {reason}")
    assert result.exit_code == 1


def test_a_problem_takes_one_line_whatever_the_name(manifest: Any) -> None:
    result = validate(manifest(CLAIM.replace("name: my-claim", r'name: "\e[31mred\nnext"')))
    (line,) = result.stdout.splitlines()
    assert r"ResourceClaim here/\x1b[31mred\nnext: metadata.name: Invalid value" in line


def test_numbers_out_of_range_are_a_problem_of_their_line() -> None:
    for number in ("9" * 5000, "-1e999"):
        result = validate("-", stdin='{"kind": "ResourceClaim",\n "x": ' + number + "}")
        assert result.stdout.startswith(f"standard input:2: not valid JSON: the number {number[:20]}")
        assert result.exit_code == 1


def test_half_a_surrogate_pair_is_read_as_go_reads_it() -> None:
    text = r'{"apiVersion": "resource.k8s.io/v1", "kind": "A\ud800B\\ud800", "metadata": {"name": "\ud83d\ude00"}}'
    for wrapped in (text, f'{{"apiVersion": "v1", "kind": "List", "items": [{text}]}}'):
        result = validate("-", stdin=wrapped)
        assert result.stdout.startswith(
            "standard input:1: A\N{REPLACEMENT CHARACTER}B\\ud800 \N{GRINNING FACE}: no kind"
        )


def test_no_name_at_all_is_no_directory() -> None:
    result = validate("")
    assert (result.exit_code, result.stderr.splitlines()[0]) == (2, "--file: empty name")


def test_a_bad_expression_takes_one_line(manifest: Any) -> None:
    text = CLAIM + "        selectors: [{cel: {expression: 'device.driver =='}}]\n"
    (line,) = validate(manifest(text)).stdout.splitlines()
    assert "spec.devices.requests[0].exactly.selectors[0].cel.expression: Invalid value" in line
    assert "Syntax error" in line


def test_problems_of_devices_have_their_line_in_v1beta1_too(manifest: Any) -> None:
    text = """\
apiVersion: resource.k8s.io/v1beta1
kind: ResourceSlice
metadata: {name: s}
spec:
  driver: d.example.com
  nodeName: node-1
  pool: {name: p, generation: 1, resourceSliceCount: 1}
  devices:
  - name: gpu
    basic:
      attributes:
        two: {int: 1, string: x}
        bad name: {int: 1}
"""
    lines = validate(manifest(text)).stdout.splitlines()
    assert sorted(line.partition(".yaml:")[2].partition(":")[0] for line in lines) == ["11", "12"]


def test_unknown_fields_are_problems(manifest: Any) -> None:
    expect_problems(
        validate(manifest(CLAIM + "  device: {}\n")),
        '12: ResourceClaim here/my-claim: unknown field "spec.device"',
    )


def test_unknown_kinds_and_versions_are_explained(manifest: Any) -> None:
    text = CLAIM.replace("resource.k8s.io/v1", "resource.k8s.io/v5")
    (line,) = validate(manifest(text)).stdout.splitlines()
    assert 'no kind "ResourceClaim" is registered for version "resource.k8s.io/v5"; ResourceClaim is known in' in line
    (line,) = validate(manifest("apiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: x}\n")).stdout.splitlines()
    assert ':2: Gadget x: no kind "Gadget" is registered for version "example.com/v1"; known are' in line
    (line,) = validate(manifest("apiVersion: resource.k8s.io/v1\nkind: Gadget\n")).stdout.splitlines()
    assert "kinds of resource.k8s.io/v1: DeviceClass, DeviceTaintRule, ResourceClaim" in line
    expect_problems(
        validate(manifest("spec: {}\n")),
        "1: object: apiVersion: Required value",
        "1: object: kind: Required value",
    )


def test_every_document_of_every_file_is_checked(manifest: Any, tmp_path: Path) -> None:
    manifest("a: [\n---\n" + CLAIM, "folder/one.yaml")
    manifest(json.dumps({"kind": "List", "apiVersion": "v1", "items": [{"kind": "X"}, 3]}, indent=1), "folder/two.json")
    manifest("not a manifest", "folder/readme.md")
    result = validate(tmp_path / "folder", manifest(CLAIM, "three.yaml"))
    assert len(result.stdout.splitlines()) == 3
    assert "5 objects checked, 3 problems" in result.stderr


def test_items_of_lists_have_their_own_lines(manifest: Any) -> None:
    text = "kind: DeviceClassList\napiVersion: resource.k8s.io/v1\nitems:\n- metadata:\n    name: A\n- metadata: {}\n"
    lines = validate(manifest(text)).stdout.splitlines()
    assert [line.partition(".yaml:")[2].partition(":")[0] for line in lines] == ["5", "6"]


def test_standard_input_is_read() -> None:
    result = validate("-", stdin=CLAIM.replace("here", "Not_Here"))
    assert result.stdout.startswith("standard input:5: ResourceClaim Not_Here/my-claim: metadata.namespace: ")


def test_pods_are_checked_as_far_as_dray_knows_them(manifest: Any) -> None:
    pod = """\
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  resourceClaims: [{name: gpu}]
  containers:
  - name: c
    image: i
    resources:
      claims: [{name: other}]
"""
    fields = [line.split(": ")[2] for line in validate(manifest(pod)).stdout.splitlines()]
    assert fields == ["spec.resourceClaims[0]", "spec.containers[0].resources.claims[0]"]


def test_the_status_of_a_claim_is_checked_too(manifest: Any) -> None:
    result = validate(manifest(CLAIM + "status:\n  reservedFor:\n  - resource: pods\n    name: p\n    uid: u\n"))
    assert ":13: ResourceClaim here/my-claim: status.reservedFor: Forbidden" in result.stdout


def test_admin_access_is_no_question_of_the_manifest(manifest: Any) -> None:
    assert validate(manifest(CLAIM + "        adminAccess: true\n")).exit_code == 0


def test_features_can_be_turned_off(manifest: Any) -> None:
    text = CLAIM + "    constraints:\n    - cel: {expression: 'true'}\n"
    assert validate(manifest(text)).exit_code == 0
    off = validate(manifest(text), options=("--feature-gates", "DRACELDeviceConstraint=false"))
    assert off.exit_code == 1
    unknown = validate(manifest(text), options=("--feature-gates", "Magic=true"))
    assert unknown.exit_code == 2
    assert "unknown feature gate" in unknown.stderr


def test_what_can_not_be_read_is_unusable(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "latin.yaml").write_bytes(b"a: \xe4\n")
    (tmp_path / "huge.yaml").write_bytes(b"#" * (MAX_FILE + 1))
    for name, reason in {
        "missing.yaml": "No such file",
        "empty": "no file in it",
        "latin.yaml": "not UTF-8",
        "huge.yaml": "larger than 32 MiB",
    }.items():
        result = validate(tmp_path / name)
        assert (result.exit_code, result.stdout) == (2, "")
        assert reason in result.stderr


@pytest.mark.parametrize(
    "text",
    [
        '{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "spec": {"devi',
        "a: &a [x]\nb: &b [*a, *a]\n" + "".join(f"{n}: &{n} [*b, *b]\n" for n in "cdef") + "[",
        "[" * 50_000,
        "kind: [1]\napiVersion: {}\nmetadata: 7\n",
        "- 1\n",
        "just text\n",
        "kind: Pod\napiVersion: v1\nspec: nothing\n",
        "kind: Pod\napiVersion: v1\nspec: {containers: 3}\n",
        "kind: ResourceClaim\napiVersion: resource.k8s.io/v1\nmetadata: 3\n",
    ],
)
def test_broken_input_is_a_problem_and_no_crash(text: str, manifest: Any) -> None:
    result = validate(manifest(text))
    assert result.exit_code == 1
    assert result.stdout
    assert result.exception is None or isinstance(result.exception, SystemExit)
