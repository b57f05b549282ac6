"""Registry of methods by name; each family declares its own, and new ones are added here."""

from .method.jackknife import BACKGROUND_ERRORS
from .method.method import Method
from .prediction_gap import methods as prediction_gap
from .r2 import methods as r2
from .ranking import methods as ranking
from .reductions.input_counts import INPUTS
from .reductions.loss_shares import LOSS_SHARES
from .reductions.summary import INTERACTIONS
from .semivalues import methods as semivalues

METHODS: dict[str, Method] = {method.name: method for family in (semivalues, r2, ranking, prediction_gap) for method in family.METHODS}
SHARED = (INTERACTIONS, BACKGROUND_ERRORS, LOSS_SHARES, INPUTS)  # summaries of all methods
