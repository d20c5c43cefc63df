"""Which kinds exist in which version, and in which shape they are read and written there."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from dray.api import v1beta1
from dray.api.claims import ResourceClaim, ResourceClaimTemplate
from dray.api.classes import DeviceClass
from dray.api.lists import ObjectList
from dray.api.meta import RESOURCE_GROUP
from dray.api.poolstatus import ResourcePoolStatusRequest
from dray.api.slices import ResourceSlice
from dray.api.taintrules import DeviceTaintRule


class KindVersion(NamedTuple):
    """One kind in one version. `flat`: in the shape of v1beta1. `early`: Kubernetes doesn't know it any more."""

    kind: str
    version: str
    type: Any
    hub_version: str = "v1"
    flat: bool = False
    early: bool = False

    @property
    def api_version(self) -> str:
        return f"{RESOURCE_GROUP}/{self.version}"

    @property
    def hub_api_version(self) -> str:
        return f"{RESOURCE_GROUP}/{self.hub_version}"


HUB_TYPES: Final[dict[str, Any]] = {
    "ResourceClaim": ResourceClaim,
    "ResourceClaimTemplate": ResourceClaimTemplate,
    "ResourceSlice": ResourceSlice,
    "DeviceClass": DeviceClass,
    "DeviceTaintRule": DeviceTaintRule,
    "ResourcePoolStatusRequest": ResourcePoolStatusRequest,
}
"""The struct of each kind in the version that dray computes with."""

_FLAT: Final[dict[str, Any]] = {
    "ResourceClaim": v1beta1.ResourceClaim,
    "ResourceClaimTemplate": v1beta1.ResourceClaimTemplate,
    "ResourceSlice": v1beta1.ResourceSlice,
}


def _singles() -> list[KindVersion]:
    kinds = [
        KindVersion(kind, version, HUB_TYPES[kind])
        for kind in ("ResourceClaim", "ResourceClaimTemplate", "ResourceSlice", "DeviceClass")
        for version in ("v1", "v1beta2")
    ]
    kinds += [
        KindVersion(kind, version, _FLAT.get(kind, DeviceClass), flat=True, early=version == "v1alpha3")
        for kind in ("ResourceClaim", "ResourceClaimTemplate", "ResourceSlice", "DeviceClass")
        for version in ("v1beta1", "v1alpha3")
    ]
    kinds += [KindVersion("DeviceTaintRule", version, DeviceTaintRule) for version in ("v1", "v1beta2", "v1alpha3")]
    kinds.append(
        KindVersion("ResourcePoolStatusRequest", "v1alpha3", ResourcePoolStatusRequest, hub_version="v1alpha3")
    )
    return kinds


def _with_lists(singles: list[KindVersion]) -> list[KindVersion]:
    generic: Any = ObjectList
    return [
        *singles,
        *(single._replace(kind=f"{single.kind}List", type=generic[single.type]) for single in singles),
    ]


KINDS: Final[dict[tuple[str, str], KindVersion]] = {
    (kind.api_version, kind.kind): kind for kind in _with_lists(_singles())
}
"""By `apiVersion` and `kind`, lists included."""
