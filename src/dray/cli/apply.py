"""`dray apply`: makes a cluster look like manifests, by server-side apply."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Final, NamedTuple

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from dray.api.errors import NotFound, StatusError
from dray.api.meta import Json
from dray.api.resources import Resource
from dray.cli.output import object_name
from dray.cli.resource_names import UnknownResource
from dray.cli.sessions import (
    CommandFailed,
    ContextOption,
    KubeconfigOption,
    NamespaceOption,
    Session,
    gather_some,
    run_in_cluster,
)
from dray.cli.sources import BrokenDocument, ManifestObject, UnusableInput, iter_objects, read_sources
from dray.runtime.client import PatchType

MANAGER: Final = "dray"
SHOW_PROGRESS_FROM: Final = 20
_FIRST: Final = ("Namespace", "ServiceAccount", "ClusterRole", "Role", "DeviceClass", "ResourceClaimTemplate")
"""What other objects need is made before them."""

FilesOption = Annotated[
    list[str], typer.Option("--file", "-f", help="File, directory, or - for standard input. May be repeated.")
]


class Wanted(NamedTuple):
    """An object of a manifest, and where in the cluster it belongs."""

    source: ManifestObject
    resource: Resource
    namespace: str
    name: str

    def __str__(self) -> str:
        return object_name(self.resource, self.name)


async def read_manifests(session: Session, files: list[str], namespace: str) -> list[Wanted]:
    """All objects of the files. `namespace` is the one that was asked for, if any. Raises CommandFailed."""
    problems: list[str] = []
    wanted: list[Wanted] = []
    for source in read_sources(files):
        if isinstance(source, UnusableInput):
            problems.append(str(source))
            continue
        for obj in iter_objects(source):
            if isinstance(obj, BrokenDocument):
                problems.append(f"{obj.source}:{obj.line}: {obj.reason}")
                continue
            try:
                wanted.append(await _locate(session, obj, namespace))
            except (CommandFailed, UnknownResource) as error:
                problems.append(f"{obj.source}:{obj.line_of()}: {error}")
    if problems:
        raise CommandFailed("\n       ".join(problems))
    if not wanted:
        raise CommandFailed(f"no objects in {', '.join(files)}")
    return wanted


async def _locate(session: Session, obj: ManifestObject, namespace: str) -> Wanted:
    if not obj.kind or not obj.api_version:
        raise CommandFailed(f"an object needs apiVersion and kind, this one has {obj.api_version or 'no apiVersion'}")
    resource = await session.names.find_kind(obj.api_version, obj.kind)
    if not obj.key.name:
        raise CommandFailed(f"{obj.kind} without a name")
    if not resource.namespaced:
        return Wanted(obj, resource, "", obj.key.name)
    own = obj.key.namespace
    if own and namespace and own != namespace:
        raise CommandFailed(f"{obj}: its namespace is {own}, but {namespace} was asked for")
    return Wanted(obj, resource, own or session.namespace, obj.key.name)


def run(
    file: FilesOption,
    namespace: NamespaceOption = "",
    force_conflicts: Annotated[
        bool, typer.Option("--force-conflicts", help="Take over fields that others manage with another value.")
    ] = False,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = "",
) -> None:
    """Create the objects of manifests, or change them to what the manifests say.

    Fields that an earlier apply set and the manifest no longer has are removed.

    Exit status: 0, or 1 if anything failed.
    """

    async def work(session: Session) -> None:
        wanted = await read_manifests(session, file, namespace)
        wanted.sort(key=_order)
        failures: list[str] = []
        with _progress(len(wanted)) as advance:
            for _, group in itertools.groupby(wanted, key=_order):
                await gather_some([_apply(session, one, force_conflicts, failures, advance) for one in group])
        if failures:
            raise CommandFailed("\n       ".join(failures))

    run_in_cluster(work, kubeconfig, context, namespace)


def _order(wanted: Wanted) -> int:
    kind = wanted.resource.kind
    return _FIRST.index(kind) if kind in _FIRST else len(_FIRST)


async def _apply(
    session: Session, wanted: Wanted, force: bool, failures: list[str], advance: Callable[[str], None]
) -> None:
    body: Json = {**wanted.source.value}
    body["metadata"] = {**body["metadata"]}
    if wanted.namespace:
        body["metadata"]["namespace"] = wanted.namespace
    try:
        before = await _revision(session, wanted)
        after = await session.client.patch(
            wanted.resource,
            wanted.name,
            body,
            wanted.namespace,
            patch_type=PatchType.APPLY,
            field_manager=MANAGER,
            force=force,
        )
    except StatusError as error:
        failures.append(f"{wanted.source.source}:{wanted.source.line_of()}: {wanted}: {error.message}")
        advance("")
        return
    done = "created" if not before else "unchanged"
    if before and after["metadata"]["resourceVersion"] != before:
        done = "configured"
    advance(f"{wanted} {done}")


async def _revision(session: Session, wanted: Wanted) -> str:
    try:
        current = await session.client.get(wanted.resource, wanted.name, wanted.namespace)
    except NotFound:
        return ""
    return str(current["metadata"]["resourceVersion"])


@contextmanager
def _progress(total: int) -> Iterator[Callable[[str], None]]:
    """A function to call with a line for each object; a bar on a terminal if there are many."""
    if total < SHOW_PROGRESS_FROM:
        yield lambda line: typer.echo(line) if line else None
        return
    columns = (TextColumn("applying"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, transient=True) as progress:
        task = progress.add_task("", total=total)

        def advance(line: str) -> None:
            if line:
                progress.print(line, highlight=False, soft_wrap=True)
            progress.advance(task)

        yield advance
