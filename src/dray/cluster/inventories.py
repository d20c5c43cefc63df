"""The built-in models by name, and models in files."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from dray.cluster.accelerators import ACCELERATOR_MODELS
from dray.cluster.gpus import GPU_MODELS
from dray.cluster.model_files import BadModel, load_model
from dray.cluster.models import Model

MODELS: Final[dict[str, Model]] = {
    model.name: model for model in (make() for make in (*GPU_MODELS, *ACCELERATOR_MODELS))
}


def find_model(name: str) -> Model:
    """A built-in model by name, or one of a file. Raises BadModel, which lists what there is."""
    if name in MODELS:
        return MODELS[name]
    path = Path(name).expanduser()
    if not path.is_file():
        raise BadModel(f"there is no model {name!r}, and no such file. Models: {', '.join(MODELS)}")
    return load_model(path)
