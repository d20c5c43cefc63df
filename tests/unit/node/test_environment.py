"""Variables of containers, as Kubernetes expands them."""

from __future__ import annotations

import pytest

from dray.node.environment import UnsupportedVariable, expand, make_environment

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
    assert make_environment(container, POD) == {
        "NAME": "pod",
        "NODE": "node-1",
        "IP": "10.0.0.1",
        "APP": "demo",
        "BOTH": "pod on node-1",
    }


@pytest.mark.parametrize(
    "container",
    [
        {"name": "c", "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]},
        {"name": "c", "envFrom": [{"configMapRef": {"name": "m"}}]},
    ],
)
def test_sources_that_are_not_supported_are_named(container: dict[str, object]) -> None:
    with pytest.raises(UnsupportedVariable, match=r"secretKeyRef|envFrom"):
        make_environment(container, POD)
