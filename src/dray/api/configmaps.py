"""ConfigMaps."""

from __future__ import annotations

from dray.api.meta import ApiStruct, Json
from dray.api.views import ViewMeta, view_as


class ConfigMap(ApiStruct, frozen=True):
    metadata: ViewMeta = ViewMeta()
    data: dict[str, str] = {}
    binary_data: dict[str, str] = {}
    """Base64 text, as in JSON."""
    immutable: bool = False


def view_config_map(obj: Json) -> ConfigMap:
    """Raises InvalidView."""
    return view_as(obj, ConfigMap)
