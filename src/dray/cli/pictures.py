"""Draws a cluster: devices as a compact map, claims and waiting pods as tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from dray.cluster.summary import NETWORK, DeviceState, PodView, PoolView, Summary

MARKS: Final[dict[DeviceState, tuple[str, str]]] = {
    DeviceState.FREE: ("·", "dim"),
    DeviceState.USED: ("■", "cyan"),
    DeviceState.SHARED: ("◧", "cyan"),
    DeviceState.TAINTED: ("!", "bold red"),
    DeviceState.BLOCKED: ("-", "yellow"),
}
"""A character and its style."""
ROWS: Final = 24
"""So many rows are shown unless all are asked for."""
GROUP: Final = 8
"""Devices between gaps in a map, so that they can be counted."""


def draw_summary(summary: Summary, *, show_all: bool = False) -> RenderableType:
    parts: list[RenderableType] = [draw_devices(summary, show_all=show_all)]
    if summary.claims:
        parts += ["", draw_claims(summary, show_all=show_all)]
    if summary.waiting:
        parts += ["", draw_waiting(summary.waiting, show_all=show_all)]
    return Group(*parts)


def draw_devices(summary: Summary, *, show_all: bool = False) -> RenderableType:
    pools: dict[str, list[PoolView]] = {}
    for pool in summary.pools:
        pools.setdefault(pool.node, []).append(pool)
    table = _table("node", "pods", "driver", "devices", "")
    names = [(node.name, "" if node.is_ready else " (not ready)", str(node.pods)) for node in summary.nodes]
    if NETWORK in pools:
        names.append((NETWORK, "network-attached", ""))
    hidden = 0
    for name, remark, pods in names:
        found: list[PoolView | None] = [*pools.get(name, [])]
        for number, shown in enumerate(found or [None]):
            if not show_all and table.row_count >= ROWS:
                hidden += 1
                continue
            title = Text.assemble(name, (remark, "dim" if name == NETWORK else "red")) if number == 0 else Text()
            table.add_row(title, pods if number == 0 else "", *_pool_cells(shown))
    lines: list[RenderableType] = [table]
    if hidden:
        lines.append(Text(f"… and {hidden} more rows; --all shows them", style="dim"))
    return Group(*lines, draw_legend(summary))


def _pool_cells(pool: PoolView | None) -> tuple[RenderableType, RenderableType, RenderableType]:
    if pool is None:
        return Text("no devices", style="dim"), Text(), Text()
    title = Text(pool.driver) if pool.node else Text.assemble(pool.driver, (f" {pool.name}", "dim"))
    cells = Text()
    for number, device in enumerate(pool.devices):
        if number and number % GROUP == 0:
            cells.append(" ")
        cells.append(*MARKS[device.state])
    return title, cells, Text(_describe_counts(pool.counts.items()), style="dim")


def draw_legend(summary: Summary) -> Text:
    present = [state for state in DeviceState if summary.devices[state]]
    legend = Text()
    for state in present:
        mark, style = MARKS[state]
        legend.append(f"{mark} ", style=style)
        legend.append(f"{state}  ", style="dim")
    return legend


def draw_claims(summary: Summary, *, show_all: bool = False) -> RenderableType:
    table = _table("claim", "state", "devices", "used by")
    shown = summary.claims if show_all else summary.claims[:ROWS]
    for claim in shown:
        table.add_row(claim.name, claim.state, ", ".join(claim.devices), ", ".join(claim.users))
    return _with_rest(table, len(summary.claims) - len(shown), "claims")


def draw_waiting(pods: tuple[PodView, ...], *, show_all: bool = False) -> RenderableType:
    table = _table("waiting pod", "phase", "node", "why")
    shown = pods if show_all else pods[:ROWS]
    for pod in shown:
        table.add_row(pod.name, pod.phase, pod.node, Text(pod.reason, style="yellow"))
    return _with_rest(table, len(pods) - len(shown), "pods")


def describe_briefly(summary: Summary) -> str:
    """One line for a cluster that runs."""
    phases: dict[str, int] = {}
    for pod in summary.pods:
        phases[pod.phase] = phases.get(pod.phase, 0) + 1
    pods = ", ".join(f"{count} {phase.lower()}" for phase, count in sorted(phases.items())) or "none"
    devices = summary.devices
    states = _describe_counts((state, devices[state]) for state in DeviceState)
    return (
        f"{_count(len(summary.nodes), 'node')} · {_count(sum(devices.values()), 'device')}: {states or 'none'} · "
        f"{_count(len(summary.claims), 'claim')} · pods: {pods}"
    )


def _describe_counts(counts: Iterable[tuple[DeviceState, int]]) -> str:
    order = list(DeviceState)
    return ", ".join(
        f"{count} {state}" for state, count in sorted(counts, key=lambda item: order.index(item[0])) if count
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _table(*titles: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", show_edge=False)
    for title in titles:
        table.add_column(title, overflow="fold")
    return table


def _with_rest(table: Table, hidden: int, noun: str) -> RenderableType:
    if not hidden:
        return table
    return Group(table, Text(f"… and {hidden} more {noun}; --all shows them", style="dim"))
