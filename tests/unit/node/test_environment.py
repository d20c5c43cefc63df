"""Variables of containers, as Kubernetes expands them."""

from __future__ import annotations

import pytest

from dray.node.environment import expand, make_environment
from dray.node.sources import ConfigUnusable, Data, FetchedSources, Source

CONFIG: dict[Source, Data | None] = {
    Source("ConfigMap", "settings"): {"MODE": b"fast", "LEVEL": b"3", "a=b": b"no name"},
    Source("Secret", "login"): {"TOKEN": b"hidden", "binary": b"\0"},
    Source("Secret", "missing"): None,
}
SOURCES, NOTHING = FetchedSources("default", CONFIG), FetchedSources()

POD = {
    "metadata": {"name": "pod", "namespace": "default", "uid": "u", "labels": {"app": "demo"}},
    "spec": {"nodeName": "node-1"},
    "status": {"podIP": "10.0.0.1"},
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$(A)", "one"),
        ("$(A)$(A)", "oneone"),
        ("$(UNKNOWN)", "$(UNKNOWN)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$one"),
        ("$$", "$"),
        ("$A", "$A"),
        ("$(", "$("),
        ("", ""),
    ],
)
def test_references_are_expanded(text: str, expected: str) -> None:
    assert expand(text, {"A": "one"}) == expected


def test_variables_may_come_from_the_pod() -> None:
    def field(path: str) -> dict[str, object]:
        return {"valueFrom": {"fieldRef": {"fieldPath": path}}}

    container = {
        "name": "c",
        "env": [
            {"name": "NAME", **field("metadata.name")},
            {"name": "NODE", **field("spec.nodeName")},
            {"name": "IP", **field("status.podIP")},
            {"name": "APP", **field("metadata.labels['app']")},
            {"name": "BOTH", "value": "$(NAME) on $(NODE)"},
        ],
    }
    assert make_environment(container, POD, NOTHING, "10.0.0.1") == {
        "NAME": "pod",
        "NODE": "node-1",
        "IP": "10.0.0.1",
        "APP": "demo",
        "BOTH": "pod on node-1",
    }


def test_variables_may_come_from_config_maps_and_secrets() -> None:
    container = {
        "name": "c",
        "envFrom": [
            {"configMapRef": {"name": "settings"}},
            {"prefix": "MY_", "configMapRef": {"name": "settings"}},
            {"secretRef": {"name": "missing", "optional": True}},
        ],
        "env": [
            {"name": "LEVEL", "value": "4"},
            {"name": "LOGIN", "valueFrom": {"secretKeyRef": {"name": "login", "key": "TOKEN"}}},
            {"name": "NONE", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "X", "optional": True}}},
            {"name": "BOTH", "value": "$(LOGIN) $(MODE)"},
        ],
    }
    assert make_environment(container, POD, SOURCES) == {
        "MODE": "fast",
        "LEVEL": "4",
        "MY_MODE": "fast",
        "MY_LEVEL": "3",
        "LOGIN": "hidden",
        "BOTH": "hidden $(MODE)",  # what envFrom brings can't be referred to, in Kubernetes neither
    }


@pytest.mark.parametrize(
    ("container", "problem"),
    [
        ({"envFrom": [{"secretRef": {"name": "missing"}}]}, 'secret "missing" not found'),
        ({"envFrom": [{"configMapRef": {"name": "unknown"}}]}, 'configmap "unknown" not found'),
        (
            {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "X"}}}]},
            "couldn't find key X in ConfigMap default/settings",
        ),
        (
            {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "login", "key": "binary"}}}]},
            "variable A: its value has a NUL byte",
        ),
        (
            {"env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}]},
            "variable A: its source resourceFieldRef is not supported",
        ),
        (
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.priority"}}}]},
            "variable A: its source spec.priority is not supported",
        ),
    ],
)
def test_what_is_missing_or_not_supported_is_named(container: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigUnusable, match=problem):
        make_environment({"name": "c", **container}, POD, SOURCES)
