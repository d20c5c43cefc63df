"""`dray convert`: the same objects in another version of resource.k8s.io."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, Any

import typer
import yaml

from dray.api.codec import DecodeError, decode_object, encode_as
from dray.api.json_syntax import read_value
from dray.api.kinds import KINDS
from dray.api.meta import RESOURCE_GROUP, Json
from dray.api.yaml_nodes import resolve
from dray.cli.exits import PROBLEMS, UNUSABLE
from dray.cli.findings import Finding, find_at, find_broken_document, find_undecodable
from dray.cli.sources import BrokenDocument, ManifestObject, Source, UnusableInput, iter_objects, read_sources


class Version(StrEnum):
    V1 = "v1"
    V1BETA2 = "v1beta2"
    V1BETA1 = "v1beta1"
    V1ALPHA3 = "v1alpha3"


class Format(StrEnum):
    YAML = "yaml"
    JSON = "json"


def run(
    file: Annotated[
        list[str],
        typer.Option("--file", "-f", help="File, directory, or - for standard input. May be repeated."),
    ],
    to: Annotated[Version, typer.Option(help="Version of resource.k8s.io to write.")],
    output: Annotated[Format, typer.Option("--output", "-o", help="Format of the result.")] = Format.YAML,
) -> None:
    """Rewrite manifests in another version of resource.k8s.io, defaults filled in.

    Objects of other groups are passed through.

    Exit status: 1 if an object can't be converted, 2 if a file can't be read.
    """
    status = 0
    converted: list[Json] = []
    for source in read_sources(file):
        match source:
            case UnusableInput():
                typer.echo(str(source), err=True)
                status = UNUSABLE
            case Source():
                for obj in iter_objects(source):
                    result = convert_object(obj, to.value)
                    if isinstance(result, Finding):
                        typer.echo(str(result), err=True)
                        status = status or PROBLEMS
                    else:
                        converted.append(result)
    typer.echo(write_objects(converted, output), nl=False)
    if status:
        raise typer.Exit(status)


def convert_object(obj: ManifestObject | BrokenDocument, version: str) -> Json | Finding:
    """The object in `version`, one of another group as it is; or why it can't be had."""
    if isinstance(obj, BrokenDocument):
        return find_broken_document(obj)
    if obj.kind and obj.api_version.rpartition("/")[0] != RESOURCE_GROUP:
        return obj.value
    try:
        value = decode_object(obj.json_text)
    except DecodeError as error:
        return find_undecodable(obj, error)
    if (f"{RESOURCE_GROUP}/{version}", obj.kind) not in KINDS:
        known = sorted(key[0].rpartition("/")[2] for key in KINDS if key[1] == obj.kind)
        return find_at(obj, (), f"{obj.kind} doesn't exist in {version}, only in {', '.join(known)}")
    result: Json = read_value(encode_as(value, version).decode())
    return result


class _Dumper(yaml.SafeDumper):
    """Lists indented under their key, texts of several lines as such."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    """In quotes if it would be read as something else; kubectl takes more for numbers and booleans than PyYAML does."""
    style = "|" if "\n" in text else None if resolve(text) == text else "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def write_objects(objects: list[Json], format: Format) -> str:
    """YAML documents, or JSON: one object, or a List of them."""
    if format is Format.JSON:
        whole: Any = objects[0] if len(objects) == 1 else {"apiVersion": "v1", "kind": "List", "items": objects}
        return f"{json.dumps(whole, indent=2, ensure_ascii=False)}\n"
    return "---\n".join(
        yaml.dump(obj, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000) for obj in objects
    )
