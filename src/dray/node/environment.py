"""The variables and the command line of a container, as Kubernetes builds them from its spec."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from dray.api.meta import Json

_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_.-][A-Za-z0-9_.-]*)\)")
_KEYED = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")


class UnsupportedVariable(Exception):
    """A variable whose value the agent can't find; the text names it."""


def make_environment(container: Json, pod: Json) -> dict[str, str]:
    """Raises UnsupportedVariable."""
    env: dict[str, str] = {}
    if container.get("envFrom"):
        raise UnsupportedVariable(f"container {container['name']}: envFrom is not supported by this node agent")
    for item in container.get("env") or ():
        source = item.get("valueFrom")
        env[item["name"]] = _from(source, item["name"], pod) if source else expand(item.get("value", ""), env)
    return env


def expand_all(words: Sequence[str], env: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(expand(word, env) for word in words)


def expand(text: str, env: Mapping[str, str]) -> str:
    """`$(NAME)` becomes the variable's value if it is known and stays otherwise; `$$` is a dollar sign."""

    def replace(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        return env.get(match[1], match[0])

    return _REFERENCE.sub(replace, text)


def _from(source: Json, name: str, pod: Json) -> str:
    path = (source.get("fieldRef") or {}).get("fieldPath", "")
    metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
    plain = {
        "metadata.name": metadata.get("name"),
        "metadata.namespace": metadata.get("namespace"),
        "metadata.uid": metadata.get("uid"),
        "spec.nodeName": spec.get("nodeName"),
        "spec.serviceAccountName": spec.get("serviceAccountName"),
        "status.podIP": status.get("podIP"),
        "status.hostIP": status.get("hostIP"),
    }
    if path in plain:
        return plain[path] or ""
    if keyed := _KEYED.fullmatch(path):
        return str((metadata.get(keyed[1]) or {}).get(keyed[2], ""))
    kind = path or next(iter(source), "nothing")
    raise UnsupportedVariable(f"variable {name}: its source {kind} is not supported by this node agent")
