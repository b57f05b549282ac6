"""Options of a run, declared once for the command line, Python and Prefect, each with its reader."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import date as Date
from os import PathLike
from typing import Any, get_args

from ...arguments.choices import (
    COMBINATIONS,
    DEVICES,
    FILE,
    INDICES,
    Columns,
    Combinations,
    Device,
    IfChanged,
    MissingLabels,
    Precision,
    Sign,
    Space,
)
from ...arguments.endpoints import read_address
from ...arguments.iterations import read_iterations
from ...arguments.readers import (
    optional,
    read_choice,
    read_date,
    read_flag,
    read_float,
    read_interactions,
    read_names,
    read_number,
    read_number_or,
    read_parameters,
    read_partition,
    read_place,
    read_space,
    read_text,
    refuse,
)
from ...cluster.placement import READERS as PLACING
from ...cluster.placement import WAIT, Scheduler
from ...tables.names import EXPECTED, names_table

ReasonsFile = Mapping[str, Any] | str | PathLike  # or where such an object is, in TOML or JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Arguments of a run, each read and refused by its type: ``Options(ids="flight").ids`` is ``("flight",)``."""

    latest: str | None = None
    """JSON object that names the finished run of the latest date, for readers. It is updated atomically and never moves to an earlier date."""

    latest_requires: float = 0.0
    """Share of the data's rows that have to be explained for LATEST to move, 0 to 1. Where it stays for that, the command's exit code is 3."""

    table: str | None = None
    """Commit the parts, as they are, to a table of all nights, partitioned by date, once: "delta", the folder above date={date} in OUT, as a table of
    Delta Lake, or "iceberg:CATALOG.NAMESPACE.TABLE"."""

    ids: tuple[str, ...] = ()
    """Columns of the data that are passed through to the attributions."""

    precision: Precision = "float32"
    """Of the attributions as they are stored; they are computed in float64."""

    top: int | None = None
    """Also write the largest attributions of every row, so many at the most, with the features' values: a list in a column "top"."""

    sign: Sign = "both"
    """Of which attributions TOP is: all, by magnitude, those that "raises" the prediction, or those that "lowers" it."""

    columns: Columns | None = None
    """"wide", a column for every feature; "top", the list of TOP alone, where features are many; or "both", the default with TOP."""

    reasons: ReasonsFile | None = None
    """A TOML or JSON file that says which attributions are told as reasons, how many, and in which words: a list of them in a column "reasons"."""
    values: bool = False
    """Also write the features' values beside the attributions, in columns such as value_age, so that a row can be shown with them."""

    global_only: bool = False
    """Publish summaries alone, no rows."""

    single_writer: bool = False
    """Nobody else writes this run, so that a store without conditions on writes will do."""

    if_changed: IfChanged = "refuse"
    """What to do where the output holds a run of other data, another model or other options: "refuse"; "replace" it by one that is made beside it,
    takes over what is unchanged, and takes its place in one step; or "keep" it, if it is finished."""

    keep_replaced: bool = False
    """Keep the run that this one replaces, in its folder, until another one replaces it: leafledger rollback puts it back. On a disk parts that
    both runs have take no room twice."""

    digest_inputs: bool = False
    """Read every byte of the data and the background once more, before rows are explained, and keep the files' SHA-256 in inputs.json. They are
    compared again when a run is resumed, and by check --deep."""

    item_rows: int | str | None = None
    """Make parts of about so many rows: small files that follow each other in one partition go into one, larger files are cut. "file" makes one of
    every file, or several. By default files of fewer than 100,000 rows go together, into parts of 100,000 to 260,000."""

    date: Date | None = None
    """YYYY-MM-DD, or today or yesterday by this machine's clock, in its local time zone (TZ); fills {date} in every path and URI."""

    method: str = "shapley"
    """Which values rows get."""

    parameters: Mapping[str, Any] | None = None
    """Parameters of the method, NAME=VALUE: p=0.3; a list of numbers as sizes=0.5,0.25,0.25, of groups as sequence=first,then; points t:height as
    density=0:0,0.5:2,1:0."""

    partition: Mapping[str, Iterable[str | int]] | str | None = None
    """Groups of features, {"group": ["feature", …]}, by name or position, or a JSON file of such an object. Values are the groups', with owen,
    two_step and asymmetric the features' within their groups. A feature that is not named is a group of its own."""

    interactions: int | str | None = None
    """Also the interactions of every two features or groups: how many of a row to keep, the largest, or "all"."""

    order: int | None = None
    """Interactions of sets of up to so many features or groups, single ones too, in the place of pairs."""

    index: str | None = None
    """Which interaction index of sets, with --order: "SII", "k-SII" (the default), "STII", "FSII", "BII", "FBII", "Moebius" or "Co-Moebius"; methods
    other than shapley weigh sets by their own measure."""

    space: Space = "margin"
    """What is attributed: "margin", raw scores; "probability", of every class; "response", predictions in the label's units; or "loss", how wrong
    the prediction is of a row with a label. With rows of a background, all but margins are of one background row after the other, so that the base
    value is the background's mean; otherwise of the straight line from base value to margin."""

    combinations: Combinations = "shared"
    """What several features do together through one number, as CatBoost's target statistics of combinations: shared equally among them, as CatBoost
    does, or "own" players, called as city×job."""

    background: str | None = None
    """A Parquet data set over whose rows absent features are averaged (the marginal game), or "model" for the model's own leaf weights (symmetric
    trees, CatBoost's default). By default features are averaged over the trees' own covers (the path-dependent game). Methods gap and gap_greedy
    measure perturbations on it."""

    background_errors: bool = False
    """How sure are values against a background, as a sample of the rows that it stands for? A standard error beside every attribution, and in a
    summary. Takes about twenty times as long."""

    tables: str | None = None
    """Folder where what is counted of a background is kept for later runs, by default _leafledger beside the run's folder."""

    label: str | None = None
    """Column with what the model predicts."""

    weight: str | None = None
    """Column with how much a row counts, by default 1."""

    by: tuple[str, ...] = ()
    """Columns whose values make groups of rows. Importances of every group are in a summary of their own; with r2, every group's own R² is decomposed
    as well."""

    missing_labels: MissingLabels = "count"
    """What to do with rows without a label: leave them out and count them, or refuse."""

    device: Device = "cpu"
    """Where attributions are computed: the processor's cores ("cpu"), a graphics card by CUDA ("cuda"), or a card where there is one and the method
    runs there without a background ("auto"). A card computes Shapley, Banzhaf, Beta values and other semivalues, against a background Owen and
    asymmetric values too; all else is refused with "cuda"."""

    scheduler: Scheduler | None = None
    """Address of a Dask scheduler, tls:// where it is another host, or "serial" for one thread of this process. By default threads do the work."""

    threads: int | None = None
    """Threads of this process, by default one per core that it may use, and fewer where memory is short."""

    workers: int | None = None
    """Processes of a local Dask cluster, in the place of threads: to rehearse a cluster."""

    wait: float = WAIT
    """Seconds that a scheduler may take to answer, and as many again until it has a worker. A cluster that starts workers as there is work may need
    minutes."""

    plain_tcp: bool = False
    """Reach a scheduler on another host without TLS: whoever shares that network can run code on its workers."""

    max_rejected: int | None = None
    """Files or work items that may be left out since they cannot be read; by default any number, as long as something is left. Where any are, the
    command's exit code is 3."""

    missing: float | None = None
    """A number that stands for a missing value in columns of numbers, such as -999, besides null and NaN. XGBoost's estimators can be trained with
    one, which their files say until 1.7, and then must be the same; files since 2.0 do not say it."""

    allow_unseen: bool = False
    """Explain rows of which the model knows hardly any category of some feature. By default they are refused: the categories are written otherwise
    than those that the model was trained on, or belong to another column."""

    trees: tuple[int, int] | None = None
    """How many of the first iterations of boosting to use, or which, START:STOP, as the library counts them; by default all, up to the best one."""

    outputs: tuple[str, ...] = ()
    """Names of the model's outputs in their order, such as its classes, which most files do not know. They name columns and summaries."""

    output: str | None = None
    """The only output to explain, by its name or position; by default all. Or one that differs from row to row, named in a column "output":
    "predicted", the class with the largest margin, or "other", another one, drawn with the seed behind a colon, as in other:7."""

    predictions: tuple[str, ...] = ()
    """Columns with the margins (raw scores) that the model gave these rows, one per output: each is compared with what is explained, and a row that
    differs ends the run. So what was scored is what is explained."""

    mlflow_run: str | None = None
    """An MLflow run, by its id, that gets a link to the finished run: its place and the SHA-256 of its manifest as tags, summaries and manifest as
    artifacts."""

    metrics_address: str | None = None
    """Serve the run's metrics to Prometheus while it works: a port of this machine's loopback address, or HOST:PORT."""

    metrics_file: str | None = None
    """Write the run's metrics when it is over, well or not: a file NAME.prom in the folder of node_exporter's textfile collector. It outlives the
    run, and keeps when one last went well."""

    lineage: str | None = None
    """Append OpenLineage events to this local file, or send them to the server with this URL: when the run begins, and when it is finished or fails.
    One that cannot be sent costs a warning. A server's key is that of OPENLINEAGE_API_KEY."""

    def __post_init__(self) -> None:
        for name, read in READERS.items():
            object.__setattr__(self, name, read(name, getattr(self, name)))


def pick(given: Mapping[str, Any]) -> Options:
    """Pick the options among a function's arguments.

    Parameters
    ----------
    given : mapping of str to Any
        All arguments by name; it has every option.

    Raises
    ------
    UsageError
        An option is of a wrong type.
    """
    return Options(**{field.name: given[field.name] for field in fields(Options)})


def _read_reasons(name: str, given: Any) -> Mapping[str, Any] | str:
    """As they are given, or where they are; what they say is read with the model, see `read_reasons`."""
    if isinstance(given, Mapping):
        return given
    if not isinstance(given, str | PathLike):
        raise refuse(name, given, "a path or URI of a TOML or JSON file, or such an object")
    return read_place(name, given)


def _read_address(name: str, given: Any) -> str:
    address = read_text(name, str(given) if type(given) is int else given)
    read_address(address)
    return address


def _read_table(name: str, given: Any) -> str:
    if not isinstance(given, str) or not names_table(given):
        raise refuse(name, given, EXPECTED)
    return given


READERS: dict[str, Callable[[str, Any], Any]] = {
    "latest": optional(read_place),
    "latest_requires": lambda name, given: read_float(name, given, "a number from 0 to 1", 0.0, 1.0),
    "table": optional(_read_table),
    "ids": read_names,
    "precision": lambda name, given: read_choice(name, given, get_args(Precision)),
    "top": optional(lambda name, given: read_number(name, given, 1)),
    "sign": lambda name, given: read_choice(name, given, get_args(Sign)),
    "columns": optional(lambda name, given: read_choice(name, given, get_args(Columns))),
    "reasons": optional(_read_reasons),
    "values": read_flag,
    "global_only": read_flag,
    "single_writer": read_flag,
    "if_changed": lambda name, given: read_choice(name, given, get_args(IfChanged)),
    "keep_replaced": read_flag,
    "digest_inputs": read_flag,
    "item_rows": optional(read_number_or(FILE)),
    "date": optional(read_date),
    "method": read_text,
    "parameters": read_parameters,
    "partition": optional(read_partition),
    "interactions": optional(read_interactions),
    "order": optional(lambda name, given: read_number(name, given, 1)),
    "index": optional(lambda name, given: read_choice(name, given, INDICES)),
    "space": read_space,
    "combinations": lambda name, given: read_choice(name, given, COMBINATIONS),
    "background": optional(read_place),
    "background_errors": read_flag,
    "tables": optional(read_place),
    "label": optional(read_text),
    "weight": optional(read_text),
    "by": read_names,
    "missing_labels": lambda name, given: read_choice(name, given, get_args(MissingLabels)),
    "device": lambda name, given: read_choice(name, given, DEVICES),
    **PLACING,
    "max_rejected": optional(lambda name, given: read_number(name, given, 0)),
    "missing": optional(read_float),
    "allow_unseen": read_flag,
    "trees": optional(read_iterations),
    "outputs": read_names,
    "output": optional(read_text),
    "predictions": read_names,
    "mlflow_run": optional(read_text),
    "metrics_address": optional(_read_address),
    "metrics_file": optional(read_place),
    "lineage": optional(read_place),
}
