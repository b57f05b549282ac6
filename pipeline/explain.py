"""``leafledger.explain``: a run, and what changed since another one."""

import logging
from collections.abc import Callable, Iterable, Mapping
from datetime import date as Date
from os import PathLike
from typing import Any

from .arguments.choices import Columns, Combinations, Device, IfChanged, MissingLabels, Precision, Sign, Space
from .cluster.placement import Scheduler
from .dataset.columns.notes import warn_positions, warn_user
from .dataset.columns.partition import Partition
from .display.text import printable
from .drift.compare.alarm_thresholds import Given
from .progress import Progress, no_progress
from .runs.advisories.advisory import PAGE
from .runs.explain import explain_job
from .runs.job.job import Job, make_job
from .runs.job.options import ReasonsFile, pick
from .runs.records.derived import Compared
from .runs.records.manifest import Manifest

_LOG = logging.getLogger("leafledger")


def _ask(job: Job, against: str | PathLike | None, thresholds: Given | None) -> Callable[[Manifest, Progress], Compared] | None:
    """Read what a run is to be compared with, None where nothing is: what compares takes a second to import."""
    if against is None and thresholds is None:
        return None
    from .drift.against import ask_comparison

    return ask_comparison(job, against, thresholds)


def explain(
    model: str | PathLike,
    data: str | PathLike,
    out: str | PathLike,
    *,
    latest: str | PathLike | None = None,
    latest_requires: float = 0.0,
    table: str | None = None,
    ids: str | Iterable[str] = (),
    precision: Precision = "float32",
    top: int | None = None,
    sign: Sign = "both",
    columns: Columns | None = None,
    reasons: ReasonsFile | None = None,
    values: bool = False,
    global_only: bool = False,
    single_writer: bool = False,
    if_changed: IfChanged = "refuse",
    keep_replaced: bool = False,
    digest_inputs: bool = False,
    item_rows: int | str | None = None,
    date: Date | str | None = None,
    method: str = "shapley",
    parameters: Mapping[str, Any] | None = None,
    partition: Partition | None = None,
    interactions: int | str | None = None,
    order: int | None = None,
    index: str | None = None,
    space: Space = "margin",
    combinations: Combinations = "shared",
    background: str | PathLike | None = None,
    background_errors: bool = False,
    tables: str | PathLike | None = None,
    label: str | None = None,
    weight: str | None = None,
    by: str | Iterable[str] = (),
    missing_labels: MissingLabels = "count",
    device: Device = "cpu",
    scheduler: Scheduler | None = None,
    threads: int | None = None,
    workers: int | None = None,
    wait: float = 15.0,
    plain_tcp: bool = False,
    max_rejected: int | None = None,
    missing: float | None = None,
    allow_unseen: bool = False,
    trees: int | str | tuple[int, int] | None = None,
    outputs: str | Iterable[str] = (),
    output: str | None = None,
    predictions: str | Iterable[str] = (),
    mlflow_run: str | None = None,
    metrics_address: str | int | None = None,
    metrics_file: str | PathLike | None = None,
    lineage: str | PathLike | None = None,
    against: str | PathLike | None = None,
    thresholds: Given | None = None,
    progress: Progress = no_progress,
) -> Manifest:
    """Explain every row of a Parquet data set and publish attributions and summaries.

    Parameters
    ----------
    model : str or path
        Model file, a path or URI: XGBoost JSON or UBJ, LightGBM text, CatBoost cbm or JSON; or what MLflow keeps, ``models:/name/version``,
        ``models:/name@alias`` or ``runs:/run/path``. The plan and the manifest have the version that an alias meant.
    data : str or path
        Parquet file, folder, glob or Hive-partitioned data set; or a table of Delta Lake, by its folder or as ``TABLE@v12``, or of Iceberg, as
        "iceberg:CATALOG.NAMESPACE.TABLE" or by its metadata file.
    out : str or path
        Folder of the run.
    latest : str or path, optional
        JSON object that names the finished run of the latest date, see `read_latest`. It is updated atomically when this run is finished and never
        moves to an earlier date.
    latest_requires : float
        Share of the data's rows that have to be explained for `latest` to move, 0 to 1.
    table : str, optional
        A table of all nights that the parts are committed to, as they are, partitioned by date, once: "delta", the folder above ``date={date}`` in
        `out`, as a table of Delta Lake, or "iceberg:CATALOG.NAMESPACE.TABLE".
    ids : str or sequence of str
        Columns of the data that are passed through to the attributions.
    precision : {"float32", "float64"}
        Of the attributions as they are stored; they are computed in float64.
    top : int, optional
        Also write the largest attributions of every row and output, so many at the most, with the features' values: a list in a column "top".
    sign : {"both", "raises", "lowers"}
        Of which attributions `top` is: all, by magnitude, those above 0, or those below.
    columns : {"wide", "top", "both"}, optional
        A column for every feature, the list alone, or both, which is the default with `top`.
    reasons : mapping, str or path, optional
        Which attributions are told as reasons, how many, and in which words: a TOML or JSON file, or such an object. A list of them in a column
        "reasons", and how sure their choice is.
    values : bool
        Also write the features' values, as the data have them, in columns ``value_<feature>``.
    global_only : bool
        Publish summaries alone, no rows.
    single_writer : bool
        Nobody else writes this run, so that a store without conditions on writes will do.
    if_changed : {"refuse", "replace", "keep"}
        What to do where `out` holds a run of other data, another model or other options: refuse; replace it by one that is made beside it and takes
        its place in one step, and of which unchanged parts are taken over; or keep it, if it is finished.
    keep_replaced : bool
        Keep the run that this one replaces, in its folder, until another one replaces it: `rollback` puts it back.
    digest_inputs : bool
        Read every byte of the data and the background once more, in this process, before rows are explained, and keep the files' SHA-256 in
        ``inputs.json``. Whoever goes on with the run, and `check_run` with ``deep``, compares them again. Results are the same.
    item_rows : int or "file", optional
        Make parts of about so many rows, at most as many as parts have by default: small files go into one where they follow each other in one
        partition, and larger files are cut. "file" makes a part of every file, or several. By default files of fewer than 100,000 rows go together,
        into parts of 100,000 to 260,000, fewer where rows are large. The order of rows stays.
    date : date or str, optional
        As text YYYY-MM-DD, or "today" or "yesterday" in local time. Fills ``{date}`` in every path and URI.
    method : str
        One of `METHODS`.
    parameters : mapping, optional
        Parameters of the method by name.
    partition : mapping, str or path, optional
        Groups of features, group -> features by name or position, or a JSON file of such an object; others are groups of their own. Values are the
        groups', with methods "owen", "two_step" and "asymmetric" the features' within their groups.
    interactions : int or "all", optional
        Also the interactions of every two features or groups: how many of a row and output to keep, the largest by magnitude, or all that are
        not zero.
    order : int, optional
        Interactions of sets of up to so many features or groups, single ones too, in the place of pairs.
    index : str, optional
        Which interaction index of sets: "SII", "k-SII", "STII", "FSII", "BII", "FBII", "Moebius" or "Co-Moebius"; by default "k-SII". Methods other
        than "shapley" weigh sets by their own measure.
    space : {"margin", "probability", "response", "loss"}
        What to attribute: margins, classes' probabilities, predictions in the label's units, or the loss of the model's objective, which takes
        `label`. With rows of a background, of one background row after the other; otherwise along the straight line of margins from base value to
        row.
    combinations : {"shared", "own"}
        What several features do together through one number, as CatBoost's target statistics of combinations: shared equally among them, as CatBoost
        does, or players of their own, called as ``city×job``.
    background : str or path, optional
        Data set, as for `data`, over whose rows absent features are averaged (the marginal game), or "model" for the model's own leaf weights
        (symmetric trees). By default they are averaged over the trees' own covers (the path-dependent game). Methods "gap" and "gap_greedy" measure
        deviations on it, and draw categories and groups from it.
    background_errors : bool
        How sure are values against a background, as a sample of the rows that it stands for? A standard error beside every attribution, and in the
        summary "background_errors". Takes about twenty times as long.
    tables : str or path, optional
        Folder where what is counted of a background is kept for later runs, by default ``_leafledger`` beside the run's.
    label, weight : str, optional
        Columns with what the model predicts and, by default 1, how much a row counts, for method "r2" and space "loss".
    by : str or sequence of str
        Columns of the data; rows with the same values in them are a group. Importances of every group are in a summary of their own; with `r2`, every
        group's own R² is decomposed as well.
    missing_labels : {"count", "refuse"}
        Leave rows without a label out and count them, or end the run at the first.
    device : {"cpu", "cuda", "auto"}
        Where attributions are computed: the processor's cores, a graphics card by CUDA, or a card where there is one and the method runs there
        without a background.
    scheduler : str, Client or cluster, optional
        Address of a Dask scheduler, or a ``distributed.Client`` or a cluster of Dask, whose scheduler and TLS settings are used, or "serial" for one
        thread; by default threads of this process do all.
    threads : int, optional
        Threads of this process, by default one per core that it may use, and for which there is memory.
    workers : int, optional
        Processes of a local Dask cluster, in the place of threads. Each imports the calling script, so call under ``if __name__ == "__main__"``.
    wait : float
        Seconds that a scheduler may take to answer, and as many again until it has a worker. A cluster that starts workers as there is work
        may need minutes.
    plain_tcp : bool
        Reach a scheduler on another host without TLS, where the network is your own.
    max_rejected : int, optional
        Files or work items that may be left out since they cannot be read; by default any number, as long as something is left. The manifest and
        ``rejected.json`` say what was left out and why.
    missing : float, optional
        A number that stands for a missing value in columns of numbers, besides null and NaN.
    allow_unseen : bool
        Take data, and a background, of which the model knows hardly any category of some feature; by default they are refused.
    trees : int, "start:stop" or (int, int), optional
        How many of the first iterations of boosting to use, or which, as the library counts them; by default all, up to the best one.
    outputs : str or sequence of str
        Names of the model's outputs in their order, such as its classes, which most files do not know.
    output : str, optional
        The only output to explain, by its name or position; or "predicted", the class of every row's largest margin, or "other", another one, drawn
        with the seed behind a colon, as in "other:7". Parts then have a column "output".
    predictions : str or sequence of str
        Columns with the margins that the model gave these rows, one per output. They are compared with what is explained.
    mlflow_run : str, optional
        An MLflow run, by its id, that gets a link to the finished run: tags ``leafledger.run`` and ``leafledger.manifest``, its place and the SHA-256
        of its manifest; summaries and manifest as artifacts. Where they cannot be logged, a warning of the logger "leafledger" says so.
    metrics_address : int or str, optional
        A port, on the loopback address, or "host:port", where Prometheus can read the run's metrics while it works.
    metrics_file : str or path, optional
        A local file, ``NAME.prom``, that gets the metrics when the run is over, well or not, for node_exporter's textfile collector.
    lineage : str or path, optional
        A local file that OpenLineage events are appended to, or the URL of a server that they are sent to: when the run begins, and when it is
        finished or fails. One that cannot be sent costs a warning.
    against : str or path, optional
        Folder of a finished run, or the JSON object that names the latest one, such as `latest`: say what changed since, as `drift` does, once the
        run is published and before `latest` moves. What drifted is a warning of the logger "leafledger", and `list_runs` has it; so is why nothing
        could be compared. The first night is compared with nothing.
    thresholds : mapping, str or path, optional
        What counts as drift, as for `drift`.
    progress : callable
        Called with a ``Work`` before the background is counted, before tables are prepared for it, and before rows are explained; what it returns
        is called with every piece as it is done.

    Returns
    -------
    Manifest
        of the finished run; an unfinished run of the same plan is completed, a finished one is left as it is, and a warning names the advisories
        that may concern it

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where.
    """
    job = make_job(model, data, out, pick(locals()))
    done = explain_job(job, progress, compare=_ask(job, against, thresholds))
    warn_positions(done.model, job.data)
    if done.advisories:
        names = ", ".join(each.name for each in done.advisories)
        cure = f'make it again with if_changed="replace", see {PAGE}'
        warn_user(printable(f"{job.out}: advisories {names} may concern it, made by leafledger {done.manifest.version}: {cure}"))
    if done.kept:
        _LOG.warning(printable(f"{out}: kept, though what is asked for now differs in {done.kept}"))
    if done.unlogged is not None:
        _LOG.warning(printable(done.unlogged))
    for alarm in () if done.compared.verdict is None else done.compared.verdict.alarms:
        _LOG.warning("drift: %s", alarm)
    if done.compared.undone is not None:
        _LOG.warning(done.compared.undone)
    return done.manifest
