"""Names of all sorts, and addresses of network interfaces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from dray.api import names
from dray.api.addresses import interface_address_problems
from tests.conformance.differences import describe
from tests.conformance.runner import Case, has_keys, iter_data

ANSWERS: dict[str, Callable[[str], Any]] = {
    "cIdentifier": names.check_c_identifier,
    "dns1035Label": names.check_dns1035_label,
    "dns1123Label": names.check_dns_label,
    "dns1123Subdomain": names.check_dns_subdomain,
    "draDeviceClassName": names.device_class_name_problems,
    "draDeviceName": names.device_name_problems,
    "draDriverName": names.driver_name_problems,
    "draFullyQualifiedName": names.fully_qualified_name_problems,
    "draPoolName": names.pool_name_problems,
    "draQualifiedName": names.qualified_name_problems,
    "draUID": names.uid_problems,
    "interfaceAddress": interface_address_problems,
    "isExtendedResourceName": names.is_extended_resource_name,
    "labelValue": names.check_label_value,
    "nodeName": names.node_name_problems,
    "qualifiedName": names.check_qualified_name,
    "truncate16": lambda text: names.truncate_key(text, 16),
    "truncate63": lambda text: names.truncate_key(text, 63),
}


is_mine = has_keys("names", "interfaceAddresses")


def iter_cases(paths: list[Path]) -> Iterator[Case]:
    for _, data in iter_data(paths, is_mine):
        for section in ("names", "interfaceAddresses"):
            for vector in data.get(section, []):
                yield Case(f"{section} {vector['input']!r}", partial(check, vector))


def check(vector: dict[str, Any]) -> str | None:
    text = vector["input"]
    ours = {check: plain(ANSWERS[check](text)) for check in vector if check != "input"}
    return describe(vector, {"input": text, **ours})


def plain(answer: Any) -> Any:
    return [str(message) for message in answer] if isinstance(answer, tuple) else answer
