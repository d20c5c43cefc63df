"""`dray controllers`: claims from templates, release of devices, garbage, evictions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dray.cli.components import (
    Component,
    ComponentOptions,
    ContextOption,
    HealthBindOption,
    HealthPortOption,
    KubeconfigOption,
    LeaderElectOption,
    VerboseOption,
    run_component,
)
from dray.controllers.assembly import Controllers
from dray.runtime.clock import Clock
from dray.runtime.http_client import HttpClient
from dray.runtime.logs import LogFormat, setup_logs

NAME = "dray-controllers"


def run(
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = "",
    leader_elect: LeaderElectOption = True,
    root_ca_file: Annotated[
        Path | None,
        typer.Option(
            help="Certificates that every namespace gets as kube-root-ca.crt, if not the kubeconfig's.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    health_port: HealthPortOption = 0,
    health_bind: HealthBindOption = "127.0.0.1",
    verbose: VerboseOption = 0,
    log_format: Annotated[LogFormat, typer.Option(help="How to log.")] = "text",
) -> None:
    """Run the controllers until interrupted.

    They make claims from templates, release what finished pods held, collect garbage, evict pods from tainted
    devices, and clean up after deleted namespaces and nodes.

    Exit status: 0 after an interrupt, 1 if the cluster can't be found or leadership is lost.
    """
    setup_logs(verbose, log_format)

    def make(client: HttpClient, clock: Clock) -> Component:
        pem = root_ca_file.read_bytes() if root_ca_file is not None else client.access.authority or b""
        return Controllers(client, clock, root_ca=pem.decode())

    options = ComponentOptions(NAME, "Controlling claims", kubeconfig, context, leader_elect, health_port, health_bind)
    run_component(options, make)
