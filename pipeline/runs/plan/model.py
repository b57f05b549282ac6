"""Stage 1 of a run: loading the model, or the selected part of it."""

import math

from ...errors import UnsupportedModel
from ...models import load_ensemble
from ...models.model import Model
from ...models.row_output import choose_among
from ..job.job import Job


def load_model(job: Job) -> Model:
    """Read the model file once, with validation and digest (stage 1).

    Raises
    ------
    InvalidModel
        The file is damaged, or no model.
    UnsupportedModel
        It has something that cannot be represented, an infinite number for missing values, or no outputs to choose among.
    UsageError
        It has no such iterations or outputs, or fewer or more than names.
    """
    options = job.options
    only = None if job.row_output is not None else options.output
    model = load_ensemble(job.model, options.missing, trees=options.trees, outputs=options.outputs, output=only)
    if model.missing is not None and not math.isfinite(model.missing):  # JSON has no such number
        cure = "let data have null for it, and save the estimator with missing=nan"
        raise UnsupportedModel(f"{job.model}: {model.missing} stands for missing values, expected a finite number, or NaN alone; {cure}")
    return choose_among(job.row_output, model)
