"""From a container in a pod's spec to what a runtime runs: command, variables, devices, volumes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dray.api.cdi import ContainerEdits
from dray.api.meta import Json
from dray.node.cdi import CdiRegistry
from dray.node.checkpoint import HeldClaim
from dray.node.environment import expand_all, make_environment
from dray.node.runtimes import ContainerSpec
from dray.node.sources import FetchedSources
from dray.node.volumes import find_mounts

EXTENDED = "<extended resources>"
"""The entry under which the claim for a pod's extended resources is kept; no pod can use that name itself."""


def identify_container(container: Json, pod: Json, pod_directory: Path) -> ContainerSpec:
    """Only what is needed to find it: works whatever happened to its devices."""
    metadata = pod["metadata"]
    return ContainerSpec(
        pod_name=metadata["name"],
        pod_namespace=metadata.get("namespace", ""),
        pod_uid=metadata["uid"],
        name=container["name"],
        directory=pod_directory / container["name"],
    )


def describe_container(
    container: Json,
    pod: Json,
    claims: Mapping[str, HeldClaim],
    sources: FetchedSources,
    *,
    cdi: CdiRegistry,
    pod_directory: Path,
    address: str,
    attempt: int,
) -> ContainerSpec:
    """Raises CdiDeviceMissing, ConfigUnusable."""
    names = cdi_names(container, pod, claims)
    env = make_environment(container, pod, sources, address)
    metadata = pod["metadata"]
    return ContainerSpec(
        pod_name=metadata["name"],
        pod_namespace=metadata.get("namespace", ""),
        pod_uid=metadata["uid"],
        name=container["name"],
        directory=pod_directory / container["name"],
        image=container.get("image", ""),
        attempt=attempt,
        command=expand_all(container.get("command") or (), env),
        arguments=expand_all(container.get("args") or (), env),
        env=env,
        working_directory=container.get("workingDir", ""),
        edits=cdi.resolve(names) if names else ContainerEdits(),
        mounts=find_mounts(container, pod, pod_directory),
        address=address or "127.0.0.1",
        annotations=metadata.get("annotations") or {},
    )


def cdi_names(container: Json, pod: Json, claims: Mapping[str, HeldClaim]) -> list[str]:
    """The CDI devices of a container: of the claims and requests that it names, and of its extended resources."""
    names: list[str] = []
    for use in (container.get("resources") or {}).get("claims") or ():
        if (held := claims.get(use["name"])) is not None:
            names += held.cdi_device_ids(use.get("request", ""))
    if (held := claims.get(EXTENDED)) is not None:
        status = pod["status"]["extendedResourceClaimStatus"]
        for mapping in status.get("requestMappings") or ():
            if mapping["containerName"] == container["name"]:
                names += held.cdi_device_ids(mapping["requestName"])
    return names
