"""`dray demo`: the examples of the design documents, checked and converted."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dray.api.codec import DecodeError, decode_object, encode_as
from dray.api.features import ALL_GATES
from dray.api.kinds import KINDS
from dray.api.meta import RESOURCE_GROUP, Time
from dray.api.times import format_time
from dray.cli.checks import Checked, check_objects
from dray.cli.exits import UNUSABLE
from dray.cli.sources import BrokenDocument, ManifestObject, Source, iter_objects, read_sources

_PLACES: Final = (
    Path(__file__).resolve().parents[3] / "examples" / "seeds",
    Path(__file__).resolve().parents[1] / "examples" / "seeds",
)
"""In a checkout, and in an installed package."""

_VERSIONS: Final = ("v1", "v1beta2", "v1beta1")


def run(
    examples: Annotated[
        Path | None, typer.Argument(help="Folder of manifests.", show_default="the examples of the KEPs")
    ] = None,
) -> None:
    """Check the examples of the KEPs and convert them to each version."""
    folder = examples or next((place for place in _PLACES if place.is_dir()), None)
    if folder is None or not folder.is_dir():
        missing = f"{folder}: no such folder" if folder else "the examples aren't installed; name a folder of manifests"
        typer.echo(missing, err=True)
        raise typer.Exit(UNUSABLE)
    Console().print(make_table(folder, format_time(datetime.now(UTC))))


def make_table(folder: Path, now: Time) -> Table:
    """A row per object, under a headline per folder."""
    table = Table(title="The examples of the KEPs, checked, and converted there and back", title_justify="left")
    for name in ("object", "written in", "check", "converted"):
        table.add_column(name, overflow="fold")
    headline = ""
    for source in read_sources([str(folder)]):
        if not isinstance(source, Source):
            continue
        parent = Path(source.name).relative_to(folder).parent.as_posix()
        if parent != headline:
            headline = parent
            table.add_section()
            table.add_row(Text(headline, style="bold"))
        for checked in check_objects(iter_objects(source), ALL_GATES, now):
            table.add_row(*_describe(checked))
    return table


def _describe(checked: Checked) -> tuple[str, str, Text, Text]:
    obj, findings = checked
    verdict = Text("ok", style="green") if not findings else Text(_shorten(findings[0].reason), style="yellow")
    if isinstance(obj, BrokenDocument):
        return "", "", verdict, Text("")
    converted = Text(" ").join(_conversion(obj, version) for version in _VERSIONS)
    return str(obj), obj.api_version.removeprefix(f"{RESOURCE_GROUP}/"), verdict, converted


def _shorten(reason: str) -> str:
    message, _, explanation = reason.partition("; it ")
    return explanation or message.partition(";")[0]


def _conversion(obj: ManifestObject, version: str) -> Text:
    """The version in green if the object survives the way to it and back."""
    if (f"{RESOURCE_GROUP}/{version}", obj.kind) not in KINDS:
        return Text("")
    try:
        value = decode_object(obj.json_text)
    except DecodeError:
        return Text("")
    same = decode_object(encode_as(value, version)) == value
    return Text(version, style="green") if same else Text(f"{version} (not the same)", style="yellow")
