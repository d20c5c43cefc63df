"""`dray scheduler`: gives pods their devices and their node."""

from __future__ import annotations

from typing import Annotated

import typer

from dray.api.pods import DEFAULT_SCHEDULER
from dray.cli.components import (
    Component,
    ComponentOptions,
    ContextOption,
    FeatureGatesOption,
    HealthBindOption,
    HealthPortOption,
    KubeconfigOption,
    LeaderElectOption,
    VerboseOption,
    run_component,
)
from dray.cli.gates import read_gates
from dray.placement.planning import Preferences, Strategy
from dray.runtime.clock import Clock
from dray.runtime.http_client import HttpClient
from dray.runtime.logs import LogFormat, setup_logs
from dray.scheduler.scheduler import Scheduler, SchedulerOptions

NAME = "dray-scheduler"


def run(
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = "",
    scheduler_name: Annotated[
        str, typer.Option(help="Schedule the pods that ask for this name in spec.schedulerName.")
    ] = DEFAULT_SCHEDULER,
    device_strategy: Annotated[
        Strategy,
        typer.Option(help="Of nodes with fitting devices prefer the fullest (pack), the emptiest (spread), or any."),
    ] = Strategy.PACK,
    filter_timeout: Annotated[
        float, typer.Option(help="Seconds that the search for devices may take per node; 0 means no limit.", min=0)
    ] = 10.0,
    leader_elect: LeaderElectOption = True,
    feature_gates: FeatureGatesOption = "",
    health_port: HealthPortOption = 0,
    health_bind: HealthBindOption = "127.0.0.1",
    verbose: VerboseOption = 0,
    log_format: Annotated[LogFormat, typer.Option(help="How to log.")] = "text",
) -> None:
    """Schedule pods, with their resource claims, until interrupted.

    Exit status: 0 after an interrupt, 1 if the cluster can't be found or leadership is lost, 2 for bad options.
    """
    setup_logs(verbose, log_format)
    scheduling = SchedulerOptions(
        name=scheduler_name,
        gates=read_gates(feature_gates),
        preferences=Preferences(devices=device_strategy),
        filter_timeout=filter_timeout,
    )

    def make(client: HttpClient, clock: Clock) -> Component:
        return Scheduler(client, clock, scheduling)

    # Schedulers with different names look after different pods, so each name has a lease of its own.
    name = NAME if scheduler_name == DEFAULT_SCHEDULER else f"{NAME}-{scheduler_name}"
    purpose = f"Scheduling the pods of {scheduler_name}"
    options = ComponentOptions(name, purpose, kubeconfig, context, leader_elect, health_port, health_bind)
    run_component(options, make)
