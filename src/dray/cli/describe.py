"""`dray describe`: one object in full, for reading, with the events about it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

import typer

from dray.api.meta import Json
from dray.api.resources import EVENTS, Resource
from dray.api.times import InvalidTime, format_age
from dray.cli.get import WhatArgument, find_objects, read_targets
from dray.cli.output import print_rows, without_managers
from dray.cli.sessions import (
    ContextOption,
    KubeconfigOption,
    NamespaceOption,
    SelectorOption,
    Session,
    run_in_cluster,
)

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+|[A-Z]")
_LEFT_OUT: Final = frozenset({"name", "namespace", "labels", "annotations"})
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def run(
    what: WhatArgument,
    namespace: NamespaceOption = "",
    selector: SelectorOption = "",
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = "",
) -> None:
    """Show everything about objects, and the events about them."""

    async def work(session: Session) -> None:
        first = True
        for resource, name in await read_targets(session, what):
            objects = await find_objects(session, resource, name, everywhere=False, labels=selector, fields="")
            for obj in objects:
                if not first:
                    typer.echo("\n")
                first = False
                typer.echo("\n".join(format_description(resource, obj)))
                await _print_events(session, resource, obj)

    run_in_cluster(work, kubeconfig, context, namespace)


def format_description(resource: Resource, obj: Json) -> Iterator[str]:
    metadata = obj["metadata"]
    yield f"Name:         {metadata['name']}"
    if resource.namespaced:
        yield f"Namespace:    {metadata.get('namespace', '')}"
    yield from _pairs("Labels:       ", metadata.get("labels") or {}, "=")
    annotations = {name: text for name, text in (metadata.get("annotations") or {}).items() if name != _LAST_APPLIED}
    yield from _pairs("Annotations:  ", annotations, ": ")
    yield f"API Version:  {resource.api_version}"
    yield f"Kind:         {resource.kind}"
    rest = {name: value for name, value in without_managers(obj)["metadata"].items() if name not in _LEFT_OUT}
    yield from _section("metadata", rest, "")
    for name, value in obj.items():
        if name not in ("apiVersion", "kind", "metadata"):
            yield from _section(name, value, "")


def _pairs(title: str, values: dict[str, str], separator: str) -> Iterator[str]:
    lines = [f"{name}{separator}{text}" for name, text in sorted(values.items())] or ["<none>"]
    yield title + lines[0]
    yield from (" " * len(title) + line for line in lines[1:])


def _section(name: str, value: Any, indent: str) -> Iterator[str]:
    title = f"{indent}{heading(name)}:"
    match value:
        case dict():
            yield title
            for key, inner in value.items():
                # Keys of attributes, capacities and labels are names, not fields.
                yield from _section(key, inner, indent + "  ")
        case list() if any(isinstance(item, dict | list) for item in value):
            yield title
            for position, item in enumerate(value):
                if position:
                    yield f"{indent}  --"
                for key, inner in item.items() if isinstance(item, dict) else (("", item),):
                    yield from _section(key, inner, indent + "  ")
        case list():
            yield title
            yield from (f"{indent}  {_text(item)}" for item in value)
        case _:
            yield f"{title}  {_text(value)}"


def _text(value: Any) -> str:
    match value:
        case None:
            return "<none>"
        case bool():
            return str(value).lower()
        case str() if "\n" in value:
            return value.replace("\n", "\n    ")
        case _:
            return str(value)


def heading(name: str) -> str:
    """`deviceClassName` becomes `Device Class Name`; what isn't a field's name stays as it is."""
    if not name.isalnum() or not name[:1].islower():
        return name
    return " ".join(word if word.isupper() else word.capitalize() for word in _WORD.findall(name))


async def _print_events(session: Session, resource: Resource, obj: Json) -> None:
    metadata = obj["metadata"]
    selector = f"involvedObject.kind={resource.kind},involvedObject.name={metadata['name']}"
    if metadata.get("uid"):
        selector += f",involvedObject.uid={metadata['uid']}"
    found = (await session.client.list(EVENTS, metadata.get("namespace", ""), field_selector=selector))["items"]
    if not found:
        typer.echo("Events:  <none>")
        return
    typer.echo("Events:")
    now = datetime.now(UTC)
    rows = [["  Type", "Reason", "Age", "From", "Message"]]
    for event in sorted(found, key=lambda item: str(item.get("lastTimestamp") or item.get("eventTime") or "")):
        rows.append(
            [
                f"  {event.get('type', '')}",
                str(event.get("reason", "")),
                _age(event, now),
                str((event.get("source") or {}).get("component") or event.get("reportingComponent") or ""),
                str(event.get("message", "")).strip(),
            ]
        )
    print_rows(rows)


def _age(event: Json, now: datetime) -> str:
    last = (event.get("series") or {}).get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime")
    count = (event.get("series") or {}).get("count") or event.get("count") or 1
    try:
        age = format_age(now, last)
    except InvalidTime:
        age = "<unknown>"
    return age if count <= 1 else f"{age} (x{count})"
