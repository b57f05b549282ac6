"""All advisories, the latest last: wrong numbers that finished runs may hold, as the changelog has them under what was corrected."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..records.manifest import Manifest
from ..records.plan import Plan
from ..records.plan_file import read_plan as read_published
from .advisory import Advisory, PublishedRun

RANKING = ("curves", "gap", "gap_greedy")
LARGE, IMMENSE = 1e6, 1e30  # margins, from which digits are lost, and from which they may overflow


def _has_large_leaves(run: PublishedRun) -> bool:
    return not max(map(abs, run.manifest.bound), default=0.0) < LARGE  # NaN is not


def _overflows(run: PublishedRun) -> bool:
    return not max(map(abs, (*run.manifest.bound, *run.manifest.base)), default=0.0) < IMMENSE


def _has_background(run: PublishedRun) -> bool:
    return run.manifest.background not in (None, "model")


def _list_numbers(values: Any) -> Iterator[float]:
    """List the numbers of nested tuples."""
    for value in values if isinstance(values, tuple) else ():
        yield from _list_numbers(value)
    if isinstance(values, int | float):
        yield float(values)


def _has_small_probability(run: PublishedRun) -> bool:
    return any(0.0 < min(value, 1.0 - value) < 1e-100 for value in _list_numbers(tuple(run.manifest.parameters.values())))


def _has_extreme_exponents(run: PublishedRun) -> bool:
    exponents = [*_list_numbers(tuple(run.manifest.parameters.values()))]
    return bool(exponents) and (max(exponents) < 1e-2 or min(exponents) < 1e-6 or max(exponents) > 1e12)


def _approximates(run: PublishedRun) -> bool:
    return run.manifest.parameters.get("approximate") == "yes"


def _has_weights(run: PublishedRun) -> bool:
    return any(run.manifest.parameters.values())


def _has_several_outputs(run: PublishedRun) -> bool:
    return len(run.manifest.outputs) > 1


def _has_categories(run: PublishedRun) -> bool:
    return any(feature.categorical for feature in run.plan.features)


def _has_categories_or_underscores(run: PublishedRun) -> bool:
    return any(feature.categorical or "_" in feature.name for feature in run.plan.features)


def _leaves_players_out(run: PublishedRun) -> bool:
    return len(run.manifest.used) < len(run.plan.features)


def _tells_rounded_values(run: PublishedRun) -> bool:
    """Whether rows tell of values, and a number for missing values is another one in single precision."""
    numbers = [feature.missing for feature in run.plan.features if feature.missing is not None]
    told = run.plan.top is not None or run.plan.reasons is not None
    return told and any(float(np.float32(number)) != number for number in numbers)


ADVISORIES = (
    Advisory(
        "2026-01",
        "0.1.0",
        "0.2.0",
        "digits were lost, and the check of sums missed it; where leaves of about 1e12 differed in the third decimal, attributions were off by 3 % "
        "of the largest",
        "models with leaves that are large beside what they differ by",
        may_be=_has_large_leaves,
    ),
    Advisory(
        "2026-02",
        "0.1.0",
        "0.2.0",
        "infinite or NaN attributions, and margins beyond the precision of a run, were published",
        "models with immense leaves",
        may_be=_overflows,
    ),
    Advisory(
        "2026-03",
        "0.1.0",
        "0.2.0",
        "scores and areas are wrong: categories were looked up in another column",
        "models with categories whose last columns are in no split",
        methods=("ranker", "curves"),
        may_be=_has_categories,
    ),
    Advisory(
        "2026-04",
        "0.1.0",
        "0.2.0",
        "the ranking is not that of Gajewski et al. (2024): a feature without effect came behind one that lowers PG²",
        "all models",
        methods=("gap_greedy",),
    ),
    Advisory(
        "2026-05",
        "0.1.0",
        "0.2.0",
        "the place of a feature that is in no split is 0",
        "models that do not use all of their features",
        methods=RANKING,
        may_be=_leaves_players_out,
    ),
    Advisory(
        "2026-06",
        "0.1.0",
        "0.2.0",
        "values do not follow from the definition: sizes, or weights of all coalitions, need not have summed to one",
        "runs with such sizes or weights",
        methods=("probabilistic",),
        may_be=_has_weights,
    ),
    Advisory(
        "2026-07",
        "0.1.0",
        "0.2.0",
        "values are NaN in branches without training weight",
        "runs with a probability near 0 or 1, about 1e-160",
        methods=("banzhaf", "semivalue"),
        may_be=_has_small_probability,
    ),
    Advisory(
        "2026-08",
        "0.1.0",
        "0.2.0",
        "digits were lost, seven with both exponents at 1e-6; larger exponents overflowed",
        "runs with both exponents near 0, or with one below 1e-6 or above 1e12",
        methods=("beta",),
        may_be=_has_extreme_exponents,
    ),
    Advisory(
        "2026-09",
        "0.1.0",
        "0.2.0",
        "shares of R² mean nothing: they depend on the order of trees, or outputs are not in the label's units",
        "random forests, extra trees, bagging, boosting=rf, num_parallel_tree; RMSEWithUncertainty, several expectiles, sums of CatBoost models, "
        "unknown and custom objectives",
        methods=("r2",),
    ),
    Advisory(
        "2026-10",
        "0.1.0",
        "0.2.0",
        "estimates under neighbouring seeds shared 15 of 16 sequences, so that repeated ones showed a quarter of their spread",
        "runs with approximate=yes that were repeated with other seeds",
        methods=("gap", "gap_greedy"),
        may_be=_approximates,
    ),
    Advisory(
        "2026-11",
        "0.1.0",
        "0.2.0",
        "values were taken for other categories, or codes for values: a number for missing values that is also a code, codes in the path, categories "
        "that the file lost (EarlyStopping(save_best=True)), empty sets of categories",
        "models with categorical features",
        library="xgboost",
        may_be=_has_categories,
    ),
    Advisory(
        "2026-12",
        "0.1.0",
        "0.2.0",
        "nearly all margins may be wrong: a category's values were taken for codes or the other way, or a foreign column whose name has underscores "
        "was read",
        "models with categorical features, or with feature names that have spaces",
        library="lightgbm",
        may_be=_has_categories_or_underscores,
    ),
    Advisory(
        "2026-13",
        "0.1.0",
        "0.2.0",
        "rows took another way: missing values with nan_mode=Max and inf, missing and boolean values of categorical features; class 2 was called 1 "
        "with class_names or classes_count",
        "models with inf in training, with categorical features, or with classes named so",
        library="catboost",
    ),
    Advisory(
        "2026-14",
        "0.1.0",
        "0.2.0",
        "values were taken for unseen categories, or for the first: all of them where data have another spelling, numbers from 2^53 on, codes "
        "between -1 and 0, -0.0, and values of the path such as 01",
        "models with categorical features",
        may_be=_has_categories,
    ),
    Advisory(
        "2026-15",
        "0.1.0",
        "0.2.0",
        "rows are missing or doubled: folders that could not be read, links, files not called *.parquet or *.pq, folders of Delta Lake and Iceberg "
        "tables, pages over http with links in several spellings",
        "data sets of several files, whose rows may be compared with the manifest's n_rows",
    ),
    Advisory(
        "2026-16",
        "0.1.0",
        "0.2.0",
        "values were not those of the file: one decimal in eight was off by a last digit, INT96 ids beyond 2262 became other dates, a file that was "
        "overwritten or replaced meanwhile was taken for the one that was planned",
        "data with decimals or INT96 ids, or that others wrote to at the time",
    ),
    Advisory(
        "2026-17",
        "0.1.0",
        "0.2.0",
        "values are those of another game: kept counts of a background were used again though its rows were read in another way",
        "runs against a background that others with other columns or another --missing had counted",
        may_be=_has_background,
    ),
    Advisory(
        "2026-18",
        "0.1.0",
        "0.2.0",
        "a part may hold rows of another run, or what flipped bits made of tables: a scheduler's results of a folder that was removed and used "
        "again, and what an interrupted run had left, were taken unseen",
        "runs on a shared Dask scheduler, or resumed after an interruption",
    ),
    Advisory(
        "2026-19",
        "0.1.0",
        "0.3.0",
        "the number that the estimator takes for missing, such as -999, was taken for a number; in 0.2 unless it was given by --missing",
        "estimators of versions 1.0 to 1.7 with missing= other than NaN",
        library="xgboost",
    ),
    Advisory(
        "2026-20",
        "0.1.0",
        "0.3.0",
        "other trees were explained than predict, as fewer rounds than were kept, or weights of dropped trees were passed over, or the base value "
        "is that of another link",
        "files of versions before 1.6 with num_parallel_tree (with early stopping, or XGBRF), dart of 3.3, binary:logitraw before 1.3.1",
        library="xgboost",
    ),
    Advisory(
        "2026-21",
        "0.2.0",
        "0.3.0",
        "margins are twice those of the estimator with two classes, and probabilities with them",
        "AdaBoostClassifier with algorithm SAMME in files of scikit-learn before 1.3",
        library="scikit-learn",
    ),
    Advisory(
        "2026-22",
        "0.2.0",
        "0.3.0",
        "base values and margins are off by the mean log prior; attributions are right",
        "GradientBoostingClassifier of three or more classes in files of scikit-learn before 1.4, unless init is zero",
        library="scikit-learn",
        may_be=_has_several_outputs,
    ),
    Advisory(
        "2026-23",
        "0.1.0",
        "0.3.0",
        "the number for missing values, as float32 rounds it, stands as a value among the largest attributions, or has the reason of one; "
        "attributions are right",
        "XGBoost, CatBoost and scikit-learn's forests with float64 columns that hold it so, such as -99.90000152587890625 for -99.9",
        may_be=_tells_rounded_values,
    ),
)


def find_advisories(manifest: Manifest, read_plan: Callable[[], Plan]) -> tuple[Advisory, ...]:
    """Find the advisories that may concern a finished run.

    Parameters
    ----------
    read_plan : callable
        Reads its plan; it is asked only of a run of a version that has some.

    Returns
    -------
    tuple of Advisory
        The earliest first.
    """
    of_version = [each for each in ADVISORIES if each.is_about(manifest)]
    plan = read_plan() if of_version else None
    return tuple(each for each in of_version if plan is not None and each.may_be(PublishedRun(manifest, plan)))


def advise(run: str, manifest: Manifest) -> tuple[Advisory, ...]:
    """Find the advisories that may concern a finished run, whose plan is read where its version has some.

    Parameters
    ----------
    run : str
        URI of the run's folder.

    Returns
    -------
    tuple of Advisory
        The earliest first.
    """
    return find_advisories(manifest, lambda: read_published(manifest.home(run), manifest.plan))
