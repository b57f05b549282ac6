"""The first stage of a run: the model, or the part of it that is explained."""

from ...models import load_ensemble
from ...models.model import Model
from ...models.row_output import choose_among
from ..job.job import Job


def load_model(job: Job) -> Model:
    """Stage 1: read the model file once, validated and digested.

    Raises
    ------
    InvalidModel
        The file is damaged, or no model.
    UnsupportedModel
        It has something that cannot be represented, or no outputs to choose among.
    UsageError
        It has no such iterations or outputs, or fewer or more than names.
    """
    options = job.options
    only = None if job.row_output is not None else options.output
    model = load_ensemble(job.model, options.missing, trees=options.trees, outputs=options.outputs, output=only)
    return choose_among(job.row_output, model)
