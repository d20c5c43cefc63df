"""`dray get` and `dray watch`: objects of a cluster, once or as they change."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from dray.api.errors import Expired
from dray.api.meta import Json
from dray.api.resources import Resource
from dray.cli.output import (
    Output,
    OutputOption,
    format_table,
    object_name,
    print_objects,
    print_rows,
    read_output,
)
from dray.cli.sessions import (
    AllNamespacesOption,
    CommandFailed,
    ContextOption,
    KubeconfigOption,
    NamespaceOption,
    SelectorOption,
    Session,
    run_in_cluster,
)
from dray.runtime.client import EventType

PAGE: Final = 500

WhatArgument = Annotated[
    list[str], typer.Argument(help="KIND, KIND NAME..., KIND/NAME..., or several kinds: claims,pods.")
]
FieldSelectorOption = Annotated[str, typer.Option(help="Field selector, e.g. spec.nodeName=n1.")]


async def read_targets(session: Session, words: list[str]) -> list[tuple[Resource, str]]:
    """Resources and names; an empty name means all objects. Raises CommandFailed, UnknownResource."""
    if all("/" in word for word in words):
        pairs = [word.partition("/")[::2] for word in words]
        return [(await session.names.find(kind), name) for kind, name in pairs]
    if any("/" in word for word in words):
        raise CommandFailed("use either KIND NAME... or KIND/NAME..., not both")
    kinds = [await session.names.find(kind) for kind in words[0].split(",")]
    if len(words) > 1 and len(kinds) > 1:
        raise CommandFailed("with several kinds, give no names")
    if len(words) > 1:
        return [(kinds[0], name) for name in words[1:]]
    return [(kind, "") for kind in kinds]


async def find_objects(
    session: Session, resource: Resource, name: str, *, everywhere: bool, labels: str, fields: str
) -> list[Json]:
    namespace = "" if everywhere or not resource.namespaced else session.namespace
    if name:
        if everywhere:
            raise CommandFailed("a name belongs to one namespace; leave out --all-namespaces")
        return [await session.client.get(resource, name, namespace)]
    objects: list[Json] = []
    token = ""
    while True:
        page = await session.client.list(
            resource,
            namespace,
            label_selector=labels,
            field_selector=fields,
            limit=PAGE,
            continue_token=token,
        )
        objects += page["items"]
        token = page["metadata"].get("continue", "")
        if not token:
            return objects


def get(
    what: WhatArgument,
    namespace: NamespaceOption = "",
    all_namespaces: AllNamespacesOption = False,
    selector: SelectorOption = "",
    field_selector: FieldSelectorOption = "",
    output: OutputOption = "",
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = "",
) -> None:
    """Show objects of a cluster.

    Exit status: 0, or 1 if something asked for by name isn't there or the cluster can't be reached.
    """

    async def work(session: Session) -> None:
        form = read_output(output)
        targets = await read_targets(session, what)
        found: list[tuple[Resource, Json]] = []
        for resource, name in targets:
            objects = await find_objects(
                session, resource, name, everywhere=all_namespaces, labels=selector, fields=field_selector
            )
            found += [(resource, obj) for obj in objects]
        if form.is_table:
            _print_tables(found, form, session, everywhere=all_namespaces)
        else:
            print_objects(found, form, single=len(targets) == 1 and bool(targets[0][1]))

    run_in_cluster(work, kubeconfig, context, namespace)


def _print_tables(found: list[tuple[Resource, Json]], output: Output, session: Session, *, everywhere: bool) -> None:
    groups: dict[Resource, list[Json]] = {}
    for resource, obj in found:
        groups.setdefault(resource, []).append(obj)
    if not groups:
        where = "" if everywhere else f" in {session.namespace} namespace"
        typer.echo(f"No resources found{where}.", err=True)
        return
    for position, (resource, objects) in enumerate(groups.items()):
        if position:
            typer.echo()
        rows = format_table(
            resource,
            objects,
            wide=output.format == "wide",
            namespaced=everywhere and resource.namespaced,
            kinds=len(groups) > 1,
        )
        print_rows(rows)


def watch(
    what: WhatArgument,
    namespace: NamespaceOption = "",
    all_namespaces: AllNamespacesOption = False,
    selector: SelectorOption = "",
    field_selector: FieldSelectorOption = "",
    output: OutputOption = "",
    timeout: Annotated[int | None, typer.Option(help="Stop after this many seconds.", min=1)] = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = "",
) -> None:
    """Show objects as they are, and then every change to them, until interrupted."""

    async def work(session: Session) -> None:
        form = read_output(output)
        targets = await read_targets(session, what)
        if len(targets) != 1:
            raise CommandFailed("watch one kind, or one object, at a time")
        resource, name = targets[0]
        fields = ",".join(filter(None, (field_selector, f"metadata.name={name}" if name else "")))
        watcher = _Watcher(session, resource, form, everywhere=all_namespaces)
        await watcher.run(labels=selector, fields=fields, seconds=timeout)

    run_in_cluster(work, kubeconfig, context, namespace)


class _Watcher:
    def __init__(self, session: Session, resource: Resource, output: Output, *, everywhere: bool) -> None:
        self._session = session
        self._resource = resource
        self._output = output
        self._namespaced = everywhere and resource.namespaced
        self._namespace = "" if everywhere or not resource.namespaced else session.namespace
        self._widths: list[int] | None = None

    async def run(self, *, labels: str, fields: str, seconds: int | None) -> None:
        revision = ""
        while True:
            options: dict[str, Any] = {"label_selector": labels, "field_selector": fields, "timeout_seconds": seconds}
            try:
                async with self._session.client.watch(
                    self._resource, self._namespace, resource_version=revision, **options
                ) as events:
                    async for event in events:
                        revision = event.object["metadata"]["resourceVersion"]
                        if event.type is not EventType.BOOKMARK:
                            self._show(event.type, event.object)
            except Expired:
                revision = ""  # begin anew with what is there
            if seconds is not None:
                return

    def _show(self, kind: EventType, obj: Json) -> None:
        if self._output.format == "name":
            typer.echo(f"{kind.value:9}{object_name(self._resource, obj['metadata']['name'])}")
        elif not self._output.is_table:
            if self._output.format == "yaml":
                typer.echo("---")
            print_objects([(self._resource, obj)], self._output, single=True)
            if self._output.template is not None:
                typer.echo()
        else:
            rows = format_table(
                self._resource,
                [obj],
                wide=self._output.format == "wide",
                namespaced=self._namespaced,
                first=lambda _: kind.value,
                heading="EVENT",
            )
            rows = rows if self._widths is None else rows[1:]
            self._widths = print_rows(rows, self._widths)
