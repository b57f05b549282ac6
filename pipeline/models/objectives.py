"""What models were trained for, and so what their margins are: in the label's own units, a class's score, or on another scale."""

from dataclasses import dataclass
from enum import Enum


class Margin(Enum):
    """What a raw score stands for."""

    LABEL = "label"  # a prediction of the label, in its units
    CLASS = "class"  # a score that a link turns into a class's probability, which says nothing of other classes
    CLASSES = "classes"  # such scores of classes of one label: the largest one is that of the predicted class
    OTHER = "other"  # a logarithm, a position in a ranking, a hazard


@dataclass(frozen=True, slots=True)
class Objective:
    """An objective as its library writes it, "" where the model does not say; that of a user's own function is taken for a regression's."""

    name: str = ""
    margin: Margin = Margin.LABEL


def _named(alone: str, classes: str, others: str) -> dict[str, Margin]:
    margins = (Margin.CLASS, alone), (Margin.CLASSES, classes), (Margin.OTHER, others)
    return {name: margin for margin, names in margins for name in names.split()}


XGBOOST = _named(
    "binary:logistic binary:logitraw binary:hinge",
    "multi:softmax multi:softprob",
    "reg:logistic reg:gamma reg:tweedie count:poisson survival:cox survival:aft rank:ndcg rank:pairwise rank:map",
)
LIGHTGBM = _named("binary", "multiclass multiclassova", "poisson gamma tweedie cross_entropy cross_entropy_lambda lambdarank rank_xendcg")
CATBOOST = _named(
    "Logloss CrossEntropy Focal MultiLogloss MultiCrossEntropy",
    "MultiClass MultiClassOneVsAll",
    "Poisson Tweedie LogLinQuantile Cox SurvivalAft PairLogit PairLogitPairwise YetiRank YetiRankPairwise LambdaMart StochasticFilter StochasticRank "
    "QueryRMSE QuerySoftMax QueryCrossEntropy GroupQuantile",
)


def objective_of(name: str, known: dict[str, Margin]) -> Objective:
    """Look up the objective that a model names.

    Parameters
    ----------
    name : str
        As the library writes it; "" where the model does not say.
    known : dict of str to Margin
        What a margin stands for, by the name of the objective.

    Returns
    -------
    Objective
    """
    return Objective(name, known.get(name, Margin.LABEL))
