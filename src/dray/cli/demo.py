"""`dray demo`: the user stories of the design documents, allocated, checked, and drawn as maps of devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Column, Table
from rich.text import Text

from dray.allocator.explain_text import format_explanation
from dray.allocator.verify import verify_cluster
from dray.api.devices import Device, DeviceAttribute, DeviceID
from dray.api.features import ALL_GATES
from dray.cli.allocate import Placed, Unplaced, iter_outcomes
from dray.cli.clusters import Cluster, read_cluster
from dray.cli.exits import UNUSABLE

_PLACES: Final = (
    Path(__file__).resolve().parents[3] / "examples" / "stories",
    Path(__file__).resolve().parents[1] / "examples" / "stories",
)
"""In a checkout, and in an installed package."""

COLOURS: Final = ("bold cyan", "bold magenta", "bold yellow", "bold green")
FREE: Final = ("·", "dim")
TAKEN: Final = ("×", "red")
SIDE_BY_SIDE: Final = 110
"""From this width on, two stories stand side by side."""

PCIE_ROOT: Final = "resource.kubernetes.io/pcieRoot"

Mark = tuple[str, str]
"""A letter and its style."""


@dataclass(frozen=True)
class Played:
    """A story after its claims were allocated."""

    devices: Mapping[DeviceID, Device]
    marks: Mapping[DeviceID, Mark]
    pods: Mapping[str, Mark]
    unplaced: tuple[Unplaced, ...]
    violations: int

    def named(self, id: DeviceID, name: str) -> Text:
        """A device by name, with its mark, in the colour of who has it."""
        letter, style = self.marks.get(id, FREE)
        return Text(f"{name} {letter}", style=style)

    def numbers(self, id: DeviceID, *attributes: str) -> tuple[int, ...]:
        return tuple(self.devices[id].attributes[name].int_value or 0 for name in attributes)


class Story(NamedTuple):
    file: str
    title: str
    sentence: str
    draw: Callable[[Played], RenderableType]


def run(
    stories: Annotated[
        Path | None, typer.Argument(help="Folder of the stories.", show_default="examples/stories")
    ] = None,
) -> None:
    """Allocate devices for the user stories of the KEPs and draw who gets what.

    Ends with a pod that doesn't get its devices, and why.
    """
    folder = stories or next((place for place in _PLACES if place.is_dir()), _PLACES[0])
    missing = [story.file for story in STORIES if not (folder / story.file).is_file()]
    if missing:
        typer.echo(f"{folder}: no {', '.join(missing)} in it; name the folder with the stories", err=True)
        raise typer.Exit(UNUSABLE)
    show(Console(highlight=False), folder)


def show(console: Console, folder: Path) -> None:
    played = [(story, play(read_cluster([str(folder / story.file)], ALL_GATES))) for story in STORIES]
    legend = (("A B", COLOURS[0]), " given to a pod, ", TAKEN, " in use before, ", FREE, " free")
    console.print(Text.assemble("User stories of the KEPs. Devices: ", *legend))
    _print_panels(console, [_make_panel(*each) for each in played])
    for each in (unplaced for _, story in played for unplaced in story.unplaced):
        text = Text(format_explanation(each.explanation, min(console.width, SIDE_BY_SIDE) - 4))
        console.print(Panel(text, title=f"Why {_short(each.claims.owner)} has to wait", title_align="left"))
    console.print(
        "With your own manifests: [bold]dray allocate[/], [bold]explain[/], [bold]verify[/]; "
        "[bold]validate[/] and [bold]convert[/]."
    )


def play(cluster: Cluster) -> Played:
    """Allocates everything that is pending, and lets the checker look at the result."""
    devices = {
        DeviceID(slice_.spec.driver, slice_.spec.pool.name, device.name): device
        for slice_ in cluster.slices
        for device in slice_.spec.devices
    }
    marks: dict[DeviceID, Mark] = {}
    pods: dict[str, Mark] = {}
    unplaced: list[Unplaced] = []
    for claim in cluster.claims.values():
        if claim.status.allocation is not None:
            marks |= {result.device_id: TAKEN for result in claim.status.allocation.devices.results}
    claims = dict(cluster.claims)
    for outcome in iter_outcomes(cluster, cluster.make_index()):
        match outcome:
            case Unplaced():
                unplaced.append(outcome)
            case Placed():
                mark = (chr(ord("A") + len(pods)), COLOURS[len(pods) % len(COLOURS)])
                pods[outcome.owner] = mark
                for claim in outcome.claims:
                    claims[claim.metadata.key] = claim
                    if claim.status.allocation is not None:
                        marks |= {result.device_id: mark for result in claim.status.allocation.devices.results}
    violations = verify_cluster(cluster.slices, cluster.classes, cluster.nodes, claims.values(), cluster.gates)
    return Played(devices, marks, pods, tuple(unplaced), len(violations))


# Drawing


def _make_panel(story: Story, played: Played) -> Panel:
    who = Text("   ").join(
        [
            *(Text.assemble(mark, f" {_short(owner)}") for owner, mark in played.pods.items()),
            *(Text(f"{_short(each.claims.owner)} waits", style="dim") for each in played.unplaced),
        ]
    )
    checked = "verified" if not played.violations else f"{played.violations} violations"
    return Panel(
        Group(Text(story.sentence), story.draw(played), who),
        title=Text(story.title, style="bold"),
        title_align="left",
        subtitle=Text(checked, style="green" if not played.violations else "red"),
        subtitle_align="right",
    )


def _short(owner: str) -> str:
    """`consumer-1` for `pod default/consumer-1`."""
    return owner.rpartition("/")[2]


def _print_panels(console: Console, panels: list[Panel]) -> None:
    if console.width < SIDE_BY_SIDE:
        console.print(*panels, sep="")
        return
    grid = Table.grid(expand=True)
    grid.add_column(ratio=1)
    grid.add_column(ratio=1)
    for left, right in zip(panels[::2], panels[1::2], strict=True):
        grid.add_row(left, right)
    console.print(grid)


def _draw_cards(played: Played) -> RenderableType:
    """A row per card, a cell per partition."""
    table = Table.grid(padding=(0, 2, 0, 0))
    cards: dict[int, list[Text]] = {}
    for id, device in played.devices.items():
        (card,) = played.numbers(id, "card")
        cards.setdefault(card, []).append(played.named(id, str(device.capacity["memory"].value)))
    for card, parts in cards.items():
        table.add_row(Text(f"card {card}", style="dim"), *parts)
    return table


def _draw_ring(played: Played) -> RenderableType:
    table = Table.grid(*(Column(justify="right") for _ in played.devices), padding=(0, 1, 0, 0))
    ids = sorted(played.devices, key=lambda id: played.numbers(id, "deviceid"))
    table.add_row(*(Text(str(played.numbers(id, "deviceid")[0]), style="dim") for id in ids))
    table.add_row(*(Text(*played.marks.get(id, FREE)) for id in ids))
    return table


def _draw_grid(played: Played) -> RenderableType:
    cells = {played.numbers(id, "row", "col"): played.marks.get(id, FREE) for id in played.devices}
    table = Table.grid(padding=(0, 1, 0, 0))
    for row in sorted({row for row, _ in cells}):
        table.add_row(*(Text(*mark) for place, mark in sorted(cells.items()) if place[0] == row))
    return table


def _draw_roots(played: Played) -> RenderableType:
    """A row per PCIe root; a device with several roots is in several rows."""
    drivers = list(dict.fromkeys(id.driver for id in played.devices))
    rows: dict[str, dict[str, Text]] = {}
    for id, device in played.devices.items():
        for root in _roots(device.attributes[PCIE_ROOT]):
            rows.setdefault(root, {})[id.driver] = played.named(id, id.device)
    table = Table.grid(padding=(0, 3, 0, 0))
    for root, cells in sorted(rows.items()):
        table.add_row(Text(root, style="dim"), *(cells.get(driver, Text("")) for driver in drivers))
    return table


def _roots(attribute: DeviceAttribute) -> tuple[str, ...]:
    return attribute.string_values or (attribute.string_value or "",)


STORIES: Final = (
    Story(
        "1-partial-gpu.yaml",
        "Partial GPU (KEP-4381)",
        "Two pods want more than 2Gi each; cards are partitioned.",
        _draw_cards,
    ),
    Story(
        "2-ring.yaml",
        "Ring (KEP-5254)",
        "Three pods want four connected devices each.",
        _draw_ring,
    ),
    Story(
        "3-grid.yaml",
        "Grid (KEP-5254)",
        "Two pods want a 2×2 block each.",
        _draw_grid,
    ),
    Story(
        "4-pcie-aligned.yaml",
        "Aligned on PCIe (KEP-5491)",
        "GPU, NIC and CPU under one root; a CPU has two of them.",
        _draw_roots,
    ),
)
