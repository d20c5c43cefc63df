from __future__ import annotations

import gzip
import json
import re
import types
from importlib import resources
from typing import Any, Union, get_args, get_origin

import msgspec
import pytest
import yaml

from dray.api import v1beta1
from dray.api.claims import ResourceClaim, ResourceClaimTemplate
from dray.api.classes import DeviceClass
from dray.api.slices import ResourceSlice
from dray.api.taintrules import DeviceTaintRule
from dray.apiserver.schemas import ListOf, MapOf, Node, Struct, definitions, type_of
from tests.conformance.runner import DATA

HUB = (ResourceClaim, ResourceClaimTemplate, ResourceSlice, DeviceClass, DeviceTaintRule)
TYPES = [
    *((version, cls) for version in ("v1", "v1beta2") for cls in HUB),
    *(("v1beta1", cls) for cls in (v1beta1.ResourceClaim, v1beta1.ResourceClaimTemplate, v1beta1.ResourceSlice)),
]


def struct_in(annotation: Any) -> Any:
    """The struct class within an annotation such as `tuple[X, ...] | None`, if there is one."""
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return annotation
    if get_origin(annotation) in (Union, types.UnionType, tuple, dict):
        return next(filter(None, map(struct_in, get_args(annotation))), None)
    return None


def check_same_fields(cls: Any, schema: Node, place: str) -> None:
    match schema:
        case ListOf():
            schema = schema.item
        case MapOf():
            schema = schema.value
    assert isinstance(schema, Struct), place
    fields = {info.encode_name: info for info in msgspec.structs.fields(cls)}
    assert set(fields) == set(schema.fields), place
    for name, info in fields.items():
        inner = struct_in(info.type)
        if inner is not None and name != "metadata":
            check_same_fields(inner, schema.fields[name].type, f"{place}.{name}")


@pytest.mark.parametrize(("version", "cls"), TYPES, ids=[f"{version}-{cls.__name__}" for version, cls in TYPES])
def test_our_types_and_the_published_schemas_have_the_same_fields(version: str, cls: Any) -> None:
    check_same_fields(cls, type_of("resource.k8s.io", version, cls.__name__), cls.__name__)


def test_every_field_of_our_kinds_is_described_and_nothing_else() -> None:
    texts = yaml.safe_load(resources.files("dray.apiserver").joinpath("descriptions.yaml").read_text())
    wanted = {
        f"{name.rpartition('.')[2]}.{field}"
        for name, schema in definitions().items()
        if name.startswith("io.k8s.api.resource.v1.") and not name.endswith("List")
        for field in schema.get("properties", {})
        if field not in ("apiVersion", "kind", "metadata")
    }
    described = {name for name in texts if "." in name}
    known = {
        f"{name.rpartition('.')[2]}.{field}"
        for name, schema in definitions().items()
        for field in schema.get("properties", {})
    }
    assert wanted - described == set()
    assert described - known == set()


def test_every_reference_leads_somewhere() -> None:
    text = json.dumps(definitions())
    names = set(re.findall(r"#/components/schemas/([^\"]+)", text))
    assert names <= set(definitions())


@pytest.mark.skipif(not (DATA / "apiserver").exists(), reason="the conformance data isn't part of the repository")
def test_schemas_are_what_kubernetes_publishes_plus_our_constraint() -> None:
    published: dict[str, Any] = {}
    for path in sorted((DATA / "apiserver" / "schemas").glob("*.gz")):
        published |= json.loads(gzip.decompress(path.read_bytes()))
    for name, schema in definitions().items():
        if name not in published:
            continue
        ours = {key: value for key, value in schema.items() if key != "x-kubernetes-group-version-kind"}
        if name.endswith(".DeviceConstraint"):
            ours["properties"] = {key: value for key, value in ours["properties"].items() if key != "cel"}
        assert ours == published[name], name
