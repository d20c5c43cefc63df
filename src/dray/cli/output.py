"""How objects are shown: as a table, YAML, JSON, names, or through a JSONPath template."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Final

import typer
import yaml

from dray.api.meta import Json
from dray.api.printing import cells_of, columns_of
from dray.api.resources import Resource
from dray.cli.jsonpath import Template
from dray.cli.sessions import CommandFailed

OutputOption = Annotated[
    str, typer.Option("--output", "-o", help="wide, name, yaml, json, or jsonpath=TEMPLATE. A table if not given.")
]
_FORMATS: Final = ("", "wide", "name", "yaml", "json")


@dataclass(frozen=True)
class Output:
    format: str
    template: Template | None = None

    @property
    def is_table(self) -> bool:
        return self.format in ("", "wide")


def read_output(text: str) -> Output:
    """Raises CommandFailed, BadTemplate."""
    if text.startswith("jsonpath="):
        return Output("jsonpath", Template(text.removeprefix("jsonpath=")))
    if text not in _FORMATS:
        raise CommandFailed(f"-o {text}: use wide, name, yaml, json or jsonpath=TEMPLATE")
    return Output(text)


def object_name(resource: Resource, name: str) -> str:
    """`resourceclaim.resource.k8s.io/c1`"""
    kind = resource.kind.lower()
    return f"{kind}.{resource.group}/{name}" if resource.group else f"{kind}/{name}"


def without_managers(obj: Json) -> Json:
    """Who manages which field is rarely what one wants to read."""
    metadata = {name: value for name, value in obj.get("metadata", {}).items() if name != "managedFields"}
    return {**obj, "metadata": metadata}


def print_objects(found: Sequence[tuple[Resource, Json]], output: Output, *, single: bool) -> None:
    """Objects in a format other than a table. `single`: one object was asked for by name."""
    objects = [
        without_managers({"apiVersion": resource.api_version, "kind": resource.kind, **obj}) for resource, obj in found
    ]
    if output.format == "name":
        for resource, obj in found:
            typer.echo(object_name(resource, obj["metadata"]["name"]))
        return
    whole: Json = objects[0] if single else {"apiVersion": "v1", "kind": "List", "metadata": {}, "items": objects}
    if output.template is not None:
        typer.echo(output.template.render(whole), nl=False)
    elif output.format == "yaml":
        typer.echo(format_yaml(whole), nl=False)
    else:
        typer.echo(json.dumps(whole, indent=4, ensure_ascii=False, sort_keys=True))


class _Dumper(yaml.CSafeDumper):
    """Texts of several lines are shown as such."""


def _represent_text(dumper: Any, text: str) -> Any:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def format_yaml(value: Any) -> str:
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=True, allow_unicode=True, width=100)
    return text


def format_table(
    resource: Resource,
    objects: Iterable[Json],
    *,
    wide: bool = False,
    namespaced: bool = False,
    kinds: bool = False,
    first: Callable[[Json], str] | None = None,
    heading: str = "",
) -> list[list[str]]:
    """Rows of cells, the headings first. `kinds` puts the kind before each name; `first` adds a column in front."""
    columns = columns_of(resource.api_version, resource.kind)
    shown = [at for at, column in enumerate(columns) if wide or column.priority == 0]
    head = [columns[at].name.upper() for at in shown]
    now = datetime.now(UTC)
    rows = [([heading] if first else []) + (["NAMESPACE"] if namespaced else []) + head]
    for obj in objects:
        cells = cells_of(resource.api_version, resource.kind, obj, now)
        row = [str(cells[at]) for at in shown]
        if kinds:
            row[0] = object_name(resource, row[0])
        front = [first(obj)] if first else []
        space = [obj["metadata"].get("namespace", "")] if namespaced else []
        rows.append(front + space + row)
    return rows


def print_rows(rows: list[list[str]], widths: list[int] | None = None) -> list[int]:
    """Aligned columns; returns the widths, for rows that follow."""
    widths = [
        max([len(row[at]) for row in rows] + ([widths[at]] if widths and at < len(widths) else []))
        for at in range(len(rows[0]))
    ]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        typer.echo("   ".join(cells).rstrip())
    return widths
