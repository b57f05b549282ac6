"""Conversion of XGBoost's stored base score, a prediction, to a margin, by objective."""

from collections.abc import Callable

import numpy as np

RT_EPS = np.float32(1e-6)  # kRtEps


def _identity(base: np.ndarray) -> np.ndarray:
    return base


def _logit(base: np.ndarray) -> np.ndarray:
    """Compute the logit in XGBoost's arithmetic: near 1 its float32 difference decides the third digit (LogisticRegression::ProbToMargin)."""
    one = np.float32(1)
    return -np.log((one / np.clip(base, RT_EPS, one - RT_EPS) - one).astype(np.float64))


def _log(base: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(base.astype(np.float64))


def _expectile(base: np.ndarray) -> np.ndarray:
    """Return the first expectile, then the inverse soft-plus of the steps to the next (expectile objective, ``ProbToMargin``)."""
    steps = np.maximum(np.diff(base.astype(np.float64)) - RT_EPS, RT_EPS)
    return np.concatenate((base[:1].astype(np.float64), steps + np.log(-np.expm1(-steps))))


# Inverse links of each objective (``ProbToMargin``).
LINKS: dict[str, Callable[[np.ndarray], np.ndarray]] = (
    dict.fromkeys(("squarederror", "linear", "squaredlogerror", "absoluteerror", "pseudohubererror", "quantileerror"), _identity)
    | dict.fromkeys(("gamma", "tweedie"), _log)
    | {"logistic": _logit, "expectileerror": _expectile}
)
LINKS = {f"reg:{name}": link for name, link in LINKS.items()}
LINKS |= {"binary:logistic": _logit, "binary:logitraw": _identity, "binary:hinge": _identity, "count:poisson": _log}
LINKS |= {"survival:cox": _log, "survival:aft": _log, "multi:softmax": _identity, "multi:softprob": _identity}
LINKS |= {"rank:ndcg": _identity, "rank:pairwise": _identity, "rank:map": _identity}
RAW_IS_MARGIN = (1, 3, 1)  # version since which ``binary:logitraw`` takes its base score for a margin


def find_link(objective: str, version: tuple[int, ...]) -> Callable[[np.ndarray], np.ndarray]:
    """Return the inverse link of an objective, as the version that wrote the file has it."""
    return _logit if objective == "binary:logitraw" and version < RAW_IS_MARGIN else LINKS[objective]
