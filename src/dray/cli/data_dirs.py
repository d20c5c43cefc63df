"""The option `--data-dir`: where `dray up` keeps a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DataDirOption = Annotated[
    Path, typer.Option(help="Where the cluster keeps everything; its state stays there.", show_default="~/.dray")
]
