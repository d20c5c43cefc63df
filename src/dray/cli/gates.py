"""The option `--feature-gates`."""

from __future__ import annotations

from typing import Final

import typer

from dray.api.features import ALL_GATES, FeatureGates, parse_feature_gates

BAD_OPTION: Final = 2


def read_gates(text: str) -> FeatureGates:
    """Exits with status 2 if they make no sense."""
    try:
        return parse_feature_gates(text, ALL_GATES)
    except ValueError as error:
        typer.echo(f"--feature-gates: {error}", err=True)
        raise typer.Exit(BAD_OPTION) from None
