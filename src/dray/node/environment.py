"""The variables and the command line of a container, as Kubernetes builds them from its spec."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from dray.api.meta import Json
from dray.node.sources import ConfigUnusable, FetchedSources, source_of

_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_.-][A-Za-z0-9_.-]*)\)")
_KEYED = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")


def make_environment(container: Json, pod: Json, sources: FetchedSources, address: str = "") -> dict[str, str]:
    """`address` is that of the pod and of its node, which are one here. Raises ConfigUnusable."""
    taken: dict[str, str] = {}
    for item in container.get("envFrom") or ():
        taken |= _take_all(item, sources)
    env: dict[str, str] = {}
    for item in container.get("env") or ():
        name, origin = item["name"], item.get("valueFrom")
        value = _take(origin, name, pod, sources, address) if origin else expand(item.get("value", ""), env)
        if value is not None:
            env[name] = value
    return taken | env


def expand_all(words: Sequence[str], env: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(expand(word, env) for word in words)


def expand(text: str, env: Mapping[str, str]) -> str:
    """`$(NAME)` becomes the variable's value if it is known and stays otherwise; `$$` is a dollar sign."""

    def replace(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        return env.get(match[1], match[0])

    return _REFERENCE.sub(replace, text)


def read_field(pod: Json, path: str, address: str = "") -> str | None:
    """A field of the pod that its containers can ask for; None if there is no such field."""
    metadata, spec = pod["metadata"], pod["spec"]
    plain = {
        "metadata.name": metadata.get("name"),
        "metadata.namespace": metadata.get("namespace"),
        "metadata.uid": metadata.get("uid"),
        "spec.nodeName": spec.get("nodeName"),
        "spec.serviceAccountName": spec.get("serviceAccountName") or "default",
        "status.podIP": address,
        "status.podIPs": address,
        "status.hostIP": address,
        "status.hostIPs": address,
    }
    if path in plain:
        return plain[path] or ""
    if keyed := _KEYED.fullmatch(path):
        return str((metadata.get(keyed[1]) or {}).get(keyed[2], ""))
    return None


def _take_all(item: Json, sources: FetchedSources) -> Iterator[tuple[str, str]]:
    """All variables of an entry of `envFrom`."""
    for field in ("configMapRef", "secretRef"):
        if (reference := item.get(field)) is not None:
            data = sources.read(source_of(field, reference), optional=bool(reference.get("optional")))
            for key, value in sorted((data or {}).items()):
                if "=" not in key:
                    name = item.get("prefix", "") + key
                    yield name, _text(name, value)


def _take(origin: Json, name: str, pod: Json, sources: FetchedSources, address: str) -> str | None:
    """The value of one variable; None if it may be missing and is."""
    for field in ("configMapKeyRef", "secretKeyRef"):
        if (reference := origin.get(field)) is not None:
            optional = bool(reference.get("optional"))
            value = sources.read_key(source_of(field, reference), reference.get("key", ""), optional=optional)
            return None if value is None else _text(name, value)
    path = (origin.get("fieldRef") or {}).get("fieldPath", "")
    field_value = read_field(pod, path, address)
    if field_value is None:
        kind = path or next(iter(origin), "nothing")
        raise ConfigUnusable(f"variable {name}: its source {kind} is not supported by this node agent")
    return field_value


def _text(name: str, value: bytes) -> str:
    if b"\0" in value:
        raise ConfigUnusable(f"variable {name}: its value has a NUL byte, which no variable can have")
    return value.decode(errors="surrogateescape")
