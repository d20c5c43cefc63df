from __future__ import annotations

import pytest

from dray.api.errors import BadRequest
from dray.apiserver.protobuf import read_protobuf


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = b""
    while number >= 0x80:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def message(*fields: tuple[int, int | bytes | str]) -> bytes:
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            data = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(data)) + data
    return out


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    return b"k8s\x00" + message((1, message((1, api_version), (2, kind))), (2, raw), (3, ""), (4, ""))


def test_a_pod_comes_out_as_its_json() -> None:
    metadata = message(
        (1, "p"), (3, ""), (8, message()), (11, message((1, "app"), (2, "x"))), (11, message((1, "b"), (2, "")))
    )
    quantity = message((1, "100m"))
    resources = message((2, message((1, "cpu"), (2, quantity))), (3, message((1, "gpu"))))
    port = message((1, ""), (2, 0), (3, 80), (4, "TCP"), (5, ""))
    container = message((1, "c"), (2, "img"), (4, "a"), (4, "b"), (6, port), (8, resources), (16, 0))
    volume = message((1, "v"), (2, message((2, message((1, ""))))))
    spec = message((1, volume), (2, container), (3, "Never"), (4, 0), (10, ""), (11, 1))
    dropped: list[str] = []
    pod = read_protobuf(envelope("v1", "Pod", message((1, metadata), (2, spec), (3, message((1, ""))))), dropped)
    assert dropped == []
    assert pod["metadata"] == {"name": "p", "labels": {"app": "x", "b": ""}}
    assert pod["spec"]["containers"] == [
        {
            "name": "c",
            "image": "img",
            "args": ["a", "b"],
            "ports": [{"containerPort": 80, "protocol": "TCP"}],
            "resources": {"requests": {"cpu": "100m"}, "claims": [{"name": "gpu"}]},
        }
    ]
    assert pod["spec"]["terminationGracePeriodSeconds"] == 0, "a pointer that is set counts though it is zero"
    assert pod["spec"]["volumes"] == [{"name": "v", "emptyDir": {}}]
    assert "nodeName" not in pod["spec"], "an empty string that is always written means nothing"


def test_a_slice_keeps_its_values_and_times() -> None:
    attribute = message((1, "index"), (2, message((2, -3))))
    flag = message((1, "ecc"), (2, message((3, 0))))
    memory = message((1, "memory"), (2, message((1, message((1, "40Gi"))))))
    taint = message((1, "bad"), (3, "NoExecute"), (4, message((1, 1_700_000_000), (2, 5))))
    device = message((1, "gpu-0"), (2, attribute), (2, flag), (3, memory), (8, taint))
    spec = message((1, "gpu.example.com"), (2, message((1, "n1"), (2, 0), (3, 1))), (3, "n1"), (6, device))
    obj = read_protobuf(envelope("resource.k8s.io/v1", "ResourceSlice", message((2, spec))), [])
    assert obj["spec"] == {
        "driver": "gpu.example.com",
        "pool": {"name": "n1", "generation": 0, "resourceSliceCount": 1},
        "nodeName": "n1",
        "devices": [
            {
                "name": "gpu-0",
                "attributes": {"index": {"int": -3}, "ecc": {"bool": False}},
                "capacity": {"memory": {"value": "40Gi"}},
                "taints": [{"key": "bad", "effect": "NoExecute", "timeAdded": "2023-11-14T22:13:20Z"}],
            }
        ],
    }


def test_opaque_parameters_are_json_inside() -> None:
    opaque = message((1, "gpu.example.com"), (2, message((1, '{"kind":"Config"}'))))
    config = message((1, "r"), (2, message((1, opaque))))
    claim = message((2, message((1, message((3, config))))))
    obj = read_protobuf(envelope("resource.k8s.io/v1", "ResourceClaim", claim), [])
    assert obj["spec"]["devices"]["config"] == [
        {"requests": ["r"], "opaque": {"driver": "gpu.example.com", "parameters": {"kind": "Config"}}}
    ]


def test_unknown_numbers_are_reported() -> None:
    dropped: list[str] = []
    read_protobuf(envelope("v1", "ConfigMap", message((99, "x"))), dropped)
    assert dropped == ["field number 99 of ConfigMap is not known and was ignored"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"k8s\x00\xff",
        envelope("v1", "Nonsense", b""),
        envelope("v1", "Pod", b"\x0a\xff"),
        envelope("v1", "Pod", message((2, message((4, "text"))))),
        envelope("v1", "Pod", b"\x0b"),
        envelope(
            "resource.k8s.io/v1",
            "ResourceClaim",
            message((2, message((1, message((3, message((2, message((1, message((2, message((1, "{")))))))))))))),
        ),
    ],
)
def test_malformed_bodies_are_bad_requests(body: bytes) -> None:
    with pytest.raises(BadRequest):
        read_protobuf(body, [])
