"""Training objectives, and the meaning of margins: label units, scores of classes, or another scale."""

from dataclasses import dataclass, replace
from enum import Enum

from leafledger.kernels.quotients.quantities import QuantityName
from leafledger.kernels.slices.links import IDENTITY, Link


class Margin(Enum):
    """The meaning of a margin."""

    LABEL = "label"  # a prediction of the label, in its units
    CLASS = "class"  # a score that a link turns into a class's probability, independent of other classes
    CLASSES = "classes"  # scores of the classes of one label: the largest is that of the predicted class
    ALONE = "alone"  # one of these, without the other classes
    OTHER = "other"  # a logarithm, a position in a ranking, a hazard, or unknown


OF_CLASSES = (Margin.CLASS, Margin.CLASSES, Margin.ALONE)


@dataclass(frozen=True, slots=True)
class Objective:
    """The training objective of a model."""

    name: str = ""  # name in the library, "" if the model has none
    margin: Margin = Margin.LABEL
    link: Link | None = IDENTITY  # link of the library's predictions: probabilities, or numbers in the label's units; None for others
    probability: Link | None = None  # link to a class's probability, if the library predicts something else
    classes: tuple[str, ...] = ()  # names of both classes of a single margin, which is the second one's; empty if unknown
    threshold: float | None = None  # probability threshold of the second of two classes; None for one half

    @property
    def is_of_two(self) -> bool:
        """Whether the sign of a single margin separates two classes; false for probabilities, and for one of several classes."""
        link = self.probability or self.link
        return self.margin in (Margin.CLASS, Margin.CLASSES) and (link is None or link.name == "sigmoid")


# Losses of objectives, by their names in the libraries: mean squared error, log loss, and the unit deviances of Poisson and gamma distributions.
LOSSES: dict[str, QuantityName] = {
    **dict.fromkeys(("reg:squarederror", "reg:linear", "regression", "RMSE", "squared_error", "ls"), "squared"),
    **dict.fromkeys(("binary:logistic", "binary:logitraw", "reg:logistic", "binary", "cross_entropy"), "log"),
    **dict.fromkeys(("Logloss", "CrossEntropy", "log_loss", "deviance", "binary_crossentropy"), "log"),
    **dict.fromkeys(("count:poisson", "poisson", "Poisson"), "poisson"),
    **dict.fromkeys(("reg:gamma", "gamma"), "gamma"),
}
Known = dict[str, tuple[Margin, Link | None]]
SIGMOID, SOFTMAX, EXP = Link("sigmoid"), Link("softmax"), Link("exp")


def _named(labels: str, alone: str, classes: str, each: str, shares: str, logarithms: str) -> Known:
    """Build a library's objectives by name: in label units; of a single class; of one label's classes by softmax, or each by sigmoid; shares; and
    logarithms of the label.
    """
    kinds = (
        (labels, Margin.LABEL, IDENTITY),
        (alone, Margin.CLASS, SIGMOID),
        (classes, Margin.CLASSES, SOFTMAX),
        (each, Margin.CLASSES, SIGMOID),
        (shares, Margin.OTHER, SIGMOID),
        (logarithms, Margin.OTHER, EXP),
    )
    return {name: (margin, link) for names, margin, link in kinds for name in names.split()}


XGBOOST = _named(
    labels="reg:squarederror reg:linear reg:squaredlogerror reg:absoluteerror reg:pseudohubererror reg:quantileerror reg:expectileerror",
    alone="binary:logistic",
    classes="multi:softmax multi:softprob",
    each="",
    shares="reg:logistic",
    logarithms="reg:gamma reg:tweedie count:poisson survival:cox survival:aft",
) | {"binary:hinge": (Margin.CLASS, None), "binary:logitraw": (Margin.CLASS, IDENTITY)}
PROBABILITIES = {"binary:logitraw": SIGMOID}  # objectives whose predictions are margins
LIGHTGBM = _named(
    labels="regression regression_l1 huber fair quantile mape",
    alone="binary",
    classes="multiclass",
    each="multiclassova",
    shares="cross_entropy",
    logarithms="poisson gamma tweedie",
)
CATBOOST = _named(
    labels="RMSE MAE MAPE Quantile MultiQuantile Expectile Huber Lq LogCosh MultiRMSE MultiRMSEWithMissingValues",
    alone="Logloss CrossEntropy Focal MultiLogloss MultiCrossEntropy",
    classes="MultiClass",
    each="MultiClassOneVsAll",
    shares="",
    logarithms="Poisson Tweedie",
)


def objective_of(name: str, known: Known, scale: float = 1.0) -> Objective:
    """Look up an objective by its name in the model.

    Parameters
    ----------
    name : str
        As the library writes it; "" where the model does not say.
    known : Known
        What a margin stands for and what link it goes through, by the name of the objective.
    scale : float
        Of margins, before the link.

    Returns
    -------
    Objective
        Of a name that is not known, such as that of a user's own function, of a ranking, or of outputs of several kinds, it says nothing of margins.
    """
    margin, link = known.get(name, (Margin.OTHER, None))
    return Objective(name, margin, link if link is None or scale == 1.0 else replace(link, scale=scale), PROBABILITIES.get(name))
