"""Namespaces that always exist, and what every namespace holds from the start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dray.api.errors import AlreadyExists
from dray.api.meta import Json
from dray.apiserver.options import WriteOptions
from dray.apiserver.records import decode_json
from dray.apiserver.resources import find_row
from dray.apiserver.targets import Caller, Target

if TYPE_CHECKING:
    from dray.apiserver.registry import Registry

ALWAYS_THERE: Final = ("default", "kube-node-lease", "kube-public", "kube-system")
ROOT_CA_CONFIG_MAP: Final = "kube-root-ca.crt"
_ROOT_CA_NOTE: Final = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)
_OPTIONS: Final = WriteOptions(field_manager="kube-apiserver", field_validation="Ignore")


async def create_namespaces(registry: Registry) -> None:
    """Those that always exist, and whatever a namespace lacks, e.g. after a crash in the middle of its creation."""
    for name in ALWAYS_THERE:
        await _create(registry, "namespaces", "", {"metadata": {"name": name}})
    prefix = "/registry/core/namespaces/"
    for entry in (await registry.store.range(prefix)).entries:
        if decode_json(entry.value).get("status", {}).get("phase") != "Terminating":
            await populate_namespace(registry, entry.key.removeprefix(prefix))


async def populate_namespace(registry: Registry, namespace: str) -> None:
    await _create(registry, "serviceaccounts", namespace, {"metadata": {"name": "default"}})
    config_map: Json = {
        "metadata": {"name": ROOT_CA_CONFIG_MAP, "annotations": {"kubernetes.io/description": _ROOT_CA_NOTE}},
        "data": {"ca.crt": registry.root_certificate},
    }
    await _create(registry, "configmaps", namespace, config_map)


async def _create(registry: Registry, plural: str, namespace: str, body: Json) -> None:
    row = find_row("", "v1", plural)
    assert row is not None
    key = row.key(namespace, body["metadata"]["name"])
    if await registry.store.get(key) is not None:
        return
    try:
        await registry.create(Target(row, "v1", namespace), body, _OPTIONS, Caller())
    except AlreadyExists:
        return
