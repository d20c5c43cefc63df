"""Fields of older API versions in errors.

Declarative rules run on the requested version's type, handwritten ones on the internal type, which looks like v1. So
only the fields of declarative errors are those of the request, and only v1beta1 differs: a request has no `exactly`,
and what describes a device is below `basic`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from dray.api.claims import DeviceClaim, DeviceRequest, ResourceClaim, ResourceClaimSpec
from dray.api.conversion import to_v1beta1
from dray.validation.fields import Errors, FieldError

_LIKE_V1BETA1: Final = frozenset({"v1alpha3", "v1beta1"})
_EXACTLY: Final = re.compile(r"^(spec\.(?:spec\.)?devices\.requests\[\d+\])\.exactly\.")
_DEVICE: Final = re.compile(r"^(spec\.devices\[\d+\])\.")


def in_version(errors: Iterable[FieldError], version: str) -> Errors:
    """Declarative errors, as a client of that version gets them."""
    return [_in_v1beta1(error) for error in errors] if version in _LIKE_V1BETA1 else list(errors)


def _in_v1beta1(error: FieldError) -> FieldError:
    path = _EXACTLY.sub(r"\1.", error.field)
    path = _DEVICE.sub(r"\1.basic.", path)
    value = error.bad_value
    return replace(error, field=path, bad_value=_flat(value) if isinstance(value, DeviceRequest) else value)


def _flat(request: DeviceRequest) -> Any:
    claim = ResourceClaim(spec=ResourceClaimSpec(devices=DeviceClaim(requests=(request,))))
    return to_v1beta1(claim).spec.devices.requests[0]
