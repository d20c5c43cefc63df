"""`dray explain`: why a claim or a pod doesn't get its devices, and what would help."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import IntEnum, StrEnum
from functools import partial
from typing import Annotated, Any, Final

import typer

from dray.allocator.explain import explain
from dray.allocator.explain_text import format_explanation, summary_line
from dray.allocator.reasons import Explanation
from dray.api.devices import PoolID
from dray.api.features import FeatureGates
from dray.api.meta import ObjectKey
from dray.cel.suggestions import DeviceField
from dray.cli.clusters import ClaimSet, Cluster, read_cluster
from dray.cli.exits import DOES_NOT_FIT, UNUSABLE
from dray.cli.explain_live import LiveCluster, explain_claim, explain_pod
from dray.cli.gates import read_gates
from dray.cli.sessions import ContextOption, KubeconfigOption, NamespaceOption, Session, run_in_cluster


class Output(StrEnum):
    TEXT = "text"
    LINE = "line"
    JSON = "json"


def run(
    name: Annotated[str, typer.Argument(help="claim/NAME or pod/NAME, with a namespace as claim/NAMESPACE/NAME.")],
    file: Annotated[
        list[str] | None,
        typer.Option(
            "--file",
            "-f",
            help="File, directory, or - for standard input, instead of a live cluster. May be repeated.",
        ),
    ] = None,
    namespace: NamespaceOption = "",
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = "",
    node: Annotated[list[str] | None, typer.Option(help="Look at this node only. May be repeated.")] = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="Format of the result.")] = Output.TEXT,
    feature_gates: Annotated[
        str, typer.Option(help="Features to turn off or on, e.g. DRAAdminAccess=false. All are on.")
    ] = "",
) -> None:
    """Explain why a pending claim, or the claims of a pod, fit on no node, and what would make them fit.

    Devices are counted on their way through class, selectors, taints and use; for constraints, the best that
    could be had is shown. Without files, a live cluster is asked, as its scheduler sees it. In files, only claims
    with an allocation use devices.

    Exit status: 0 if it fits, 3 if it doesn't, 2 if a file can't be read or there is no such claim, 1 if the cluster
    can't be asked.
    """
    if file is None:
        run_in_cluster(
            partial(_explain_live, name=name, gates=read_gates(feature_gates), output=output),
            kubeconfig,
            context,
            namespace,
        )
        return
    cluster = read_cluster(file, read_gates(feature_gates))
    claim_set = find_claim_set(cluster, name)
    candidates = [each.name for each in cluster.nodes if claim_set.admits(each) and (not node or each.name in node)]
    explanation = explain(cluster.make_index(), claim_set.claims, candidates)
    _print(explanation, output)
    if not explanation.fits:
        raise typer.Exit(DOES_NOT_FIT)


def _print(explanation: Explanation, output: Output) -> None:
    match output:
        case Output.TEXT:
            typer.echo(format_explanation(explanation))
        case Output.LINE:
            typer.echo(summary_line(explanation))
        case Output.JSON:
            typer.echo(json.dumps(to_plain(explanation), indent=2, ensure_ascii=False))


async def _explain_live(session: Session, *, name: str, gates: FeatureGates, output: Output) -> None:
    kind, key = _read_name(name, session.namespace)
    cluster = await LiveCluster.read(session.client, gates)
    said, explanation = explain_pod(cluster, key) if kind == "pod" else explain_claim(cluster, key)
    if explanation is None or output is Output.TEXT:
        typer.echo(said)
    if explanation is not None:
        _print(explanation, output)
        raise typer.Exit(DOES_NOT_FIT)


def _read_name(name: str, namespace: str) -> tuple[str, ObjectKey]:
    kind, slash, rest = name.partition("/")
    kind, rest = (_KINDS.get(kind, ""), rest) if slash else ("claim", name)
    if not kind:
        raise _refusal(f"{name}: expected claim/NAME or pod/NAME")
    given, slash, short = rest.partition("/")
    return kind, ObjectKey(given, short) if slash else ObjectKey(namespace, rest)


def find_claim_set(cluster: Cluster, name: str) -> ClaimSet:
    """What `claim/NAME` or `pod/NAME` stands for; ends the command if that isn't one thing that waits for devices."""
    kind, slash, rest = name.partition("/")
    kind, rest = (_KINDS.get(kind, ""), rest) if slash else ("claim", name)
    if not kind:
        raise _refusal(f"{name}: expected claim/NAME or pod/NAME")
    pending = list(_iter_pending(cluster, kind))
    found = [claim_set for key, claim_set in pending if rest in (key.name, str(key))]
    if len(found) == 1:
        return found[0]
    if found:
        raise _refusal(f"{name}: there are several: {', '.join(each.owner for each in found)}")
    if kind == "claim" and any(rest in (key.name, str(key)) for key in cluster.claims):
        raise _refusal(f"{name}: this claim has its devices already")
    known = f"; pending are {', '.join(each.owner for _, each in pending[:8])}" if pending else ""
    raise _refusal(f"{name}: no such {kind} waits for devices{known}")


_KINDS: Final = {"claim": "claim", "claims": "claim", "resourceclaim": "claim", "pod": "pod", "pods": "pod"}


def _iter_pending(cluster: Cluster, kind: str) -> Iterator[tuple[ObjectKey, ClaimSet]]:
    for claim_set in cluster.claim_sets():
        if kind == "pod" and claim_set.pod is not None:
            yield claim_set.pod, claim_set
        elif kind == "claim":
            for claim in claim_set.claims:
                key = claim.metadata.key
                yield key, ClaimSet(f"claim {key}", (claim,), claim_set.selectors)


def _refusal(message: str) -> typer.Exit:
    typer.echo(message, err=True)
    return typer.Exit(UNUSABLE)


def to_plain(value: Any) -> Any:
    """An explanation as JSON: names in camelCase, and nothing where there is nothing to say."""
    match value:
        case IntEnum():
            return value.name.lower()
        case ObjectKey() | PoolID() | DeviceField() | Exception():
            return str(value)
        case tuple() if hasattr(value, "_asdict"):
            return to_plain(value._asdict())
        case tuple():
            return [to_plain(each) for each in value]
        case dict():
            return {_camel(name): to_plain(each) for name, each in value.items() if each not in _NOTHING}
        case _ if is_dataclass(value):
            return to_plain({each.name: getattr(value, each.name) for each in fields(value)})
        case _:
            return value


_NOTHING: Final = (None, "", (), -1)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
