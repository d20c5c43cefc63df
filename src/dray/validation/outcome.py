"""What a request is judged with, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from dray.api.claims import ResourceClaim, ResourceClaimTemplate
from dray.api.classes import DeviceClass
from dray.api.errors import Invalid
from dray.api.features import ALL_GATES, FeatureGates
from dray.api.meta import RESOURCE_GROUP, Time
from dray.api.slices import ResourceSlice
from dray.api.taintrules import DeviceTaintRule
from dray.validation.fields import FieldError
from dray.validation.rendering import quote
from dray.validation.statusauthz import Requester

ResourceObject: TypeAlias = ResourceClaim | ResourceClaimTemplate | ResourceSlice | DeviceClass | DeviceTaintRule
ObjectT = TypeVar("ObjectT", ResourceClaim, ResourceClaimTemplate, ResourceSlice, DeviceClass, DeviceTaintRule)


class RequestContext(NamedTuple):
    """All that a decision depends on besides the objects."""

    now: Time
    """For times that the server sets."""
    gates: FeatureGates = ALL_GATES
    version: str = "v1"
    """The API version of the request; errors show the fields of that version."""
    namespace: str = ""
    """That of the request's path; empty for cluster-scoped kinds."""
    namespace_labels: Mapping[str, str] = MappingProxyType({})
    requester: Requester | None = None
    """Asked about the parts of a claim's status. None stands for the server itself, which may write all of them."""


@dataclass(slots=True)
class Outcome(Generic[ObjectT]):
    """The object to be stored if there are no errors."""

    object: ObjectT
    errors: Sequence[FieldError] = ()
    warnings: Sequence[str] = ()
    kind: str = ""
    """What the message of a refusal calls the object, if not by its kind."""

    @property
    def accepted(self) -> bool:
        return not self.errors

    def refusal(self) -> Invalid:
        """The 422 answer that carries the errors."""
        kind = self.kind or type(self.object).__name__
        name = self.object.metadata.name
        texts = list(dict.fromkeys(str(error) for error in self.errors))
        said = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        details = {
            "name": name,
            "group": RESOURCE_GROUP,
            "kind": kind,
            "causes": [error.cause() for error in self.errors],
        }
        return Invalid(f"{kind}.{RESOURCE_GROUP} {quote(name)} is invalid: {said}", details=details)
