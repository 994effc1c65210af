"""A model of transformers in this process, as the table of models has it: what loads it is imported on first use."""

from __future__ import annotations

from collections.abc import Mapping

from evalcore.shell.models.checkpoint import list_remote_code
from evalcore.shell.models.hf.hf_settings import ARGUMENTS
from evalcore.shell.models.model import Backend, Model


def open_model(given: Mapping[str, object]) -> Model:
    """Load the model that these arguments describe."""
    from evalcore.shell.models.hf.hf_loader import open_hf

    return open_hf(given)


BACKEND = Backend(
    open_model,
    "a model of transformers in this process, each token computed once",
    ARGUMENTS,
    list_code=list_remote_code,
)
