"""`dray delete`: by name, by selector, or what manifests name; waits until it is gone."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import typer

from dray.api.errors import Expired, NotFound
from dray.api.meta import Json
from dray.api.resources import Resource
from dray.cli.apply import read_manifests
from dray.cli.get import find_objects, read_targets
from dray.cli.output import object_name
from dray.cli.sessions import (
    CommandFailed,
    ContextOption,
    KubeconfigOption,
    NamespaceOption,
    SelectorOption,
    Session,
    run_in_cluster,
)
from dray.runtime.client import EventType


class _Doomed(NamedTuple):
    resource: Resource
    namespace: str
    name: str


def run(
    what: Annotated[
        list[str] | None, typer.Argument(help="KIND NAME..., KIND/NAME..., or KIND with -l or --all.")
    ] = None,
    file: Annotated[
        list[str] | None, typer.Option("--file", "-f", help="Delete what these manifests name. May be repeated.")
    ] = None,
    namespace: NamespaceOption = "",
    selector: SelectorOption = "",
    everything: Annotated[bool, typer.Option("--all", help="All objects of the kind in the namespace.")] = False,
    ignore_not_found: Annotated[bool, typer.Option("--ignore-not-found", help="Don't mind what isn't there.")] = False,
    wait: Annotated[bool, typer.Option(help="Wait until the objects are gone.")] = True,
    grace_period: Annotated[
        int | None, typer.Option(help="Seconds that pods get to stop; 0 doesn't wait for them at all.", min=0)
    ] = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = "",
) -> None:
    """Delete objects of a cluster.

    Exit status: 0, or 1 if something wasn't there or couldn't be deleted.
    """

    async def work(session: Session) -> None:
        doomed = await _find(session, what or [], file or [], namespace, selector, everything)
        waiting: list[tuple[_Doomed, str]] = []
        missing: list[str] = []
        for one in doomed:
            try:
                answer = await session.client.delete(
                    one.resource,
                    one.name,
                    one.namespace,
                    propagation_policy="Background",
                    grace_period_seconds=grace_period,
                )
            except NotFound as error:
                if not ignore_not_found:
                    missing.append(error.message)
                continue
            typer.echo(f"{object_name(one.resource, one.name)} deleted")
            uid = _remaining_uid(answer)
            if uid:
                waiting.append((one, uid))
        if wait:
            for one, uid in waiting:
                await _wait_until_gone(session, one, uid)
        if missing:
            raise CommandFailed("\n       ".join(missing))

    run_in_cluster(work, kubeconfig, context, namespace)


async def _find(
    session: Session, what: list[str], files: list[str], namespace: str, selector: str, everything: bool
) -> list[_Doomed]:
    if bool(what) == bool(files):
        raise CommandFailed("say what to delete: either KIND NAME..., or -f FILE")
    if files:
        wanted = await read_manifests(session, files, namespace)
        return [_Doomed(one.resource, one.namespace, one.name) for one in reversed(wanted)]
    doomed: list[_Doomed] = []
    for resource, name in await read_targets(session, what):
        where = session.namespace if resource.namespaced else ""
        if name:
            doomed.append(_Doomed(resource, where, name))
        elif selector or everything:
            found = await find_objects(session, resource, "", everywhere=False, labels=selector, fields="")
            doomed += [_Doomed(resource, where, obj["metadata"]["name"]) for obj in found]
        else:
            raise CommandFailed(f"which {resource.plural}? Give names, -l SELECTOR, or --all")
    return doomed


def _remaining_uid(answer: Json) -> str:
    """Of an object that still waits for something; empty if it is gone."""
    metadata = answer.get("metadata", {})
    return str(metadata.get("uid", "")) if metadata.get("deletionTimestamp") else ""


async def _wait_until_gone(session: Session, one: _Doomed, uid: str) -> None:
    """A new object of the same name doesn't count."""
    while True:
        try:
            current = await session.client.get(one.resource, one.name, one.namespace)
        except NotFound:
            return
        if current["metadata"]["uid"] != uid:
            return
        revision = current["metadata"]["resourceVersion"]
        try:
            async with session.client.watch(
                one.resource, one.namespace, field_selector=f"metadata.name={one.name}", resource_version=revision
            ) as events:
                async for event in events:
                    if event.type is EventType.DELETED:
                        return
        except Expired:
            continue
