"""Contents of a report's page: its sections, with limits that keep the page small."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from leafledger.kernels.methods import METHODS
from leafledger.kernels.reductions.input_counts import INPUTS

from ..arguments.choices import LOSS
from ..dataset.columns.grouping import write_values
from ..display.text import count
from ..effects.publish import Curves
from ..errors import InvalidRun
from ..finished.finished_run import FinishedRun
from ..finished.names import Names
from ..runs.records.folder import name_file
from ..runs.records.provenance import Provenance
from .changes import Found, list_alarms, name_reference, say_change, write_changes, write_headline_of_change, write_worse
from .counts.counts import CountedColumn, Counts
from .counts.told import Told
from .figures.bars import BARS, draw_groups, draw_importance, draw_ranks, draw_shares
from .figures.dependence import draw_dependence
from .figures.effect import draw_effect
from .figures.figure import Figure, Table, Tracks, say_left_out, say_moved
from .figures.matrix import draw_curves, draw_interactions, draw_objective
from .figures.scale import WHOLE, shorten_name, shorten_names, write_number, write_share
from .figures.sets import draw_network, draw_sets
from .figures.swarm import draw_swarm
from .glossary import write_glossary
from .losses import write_losses
from .page import Page, Section
from .quality import find_missing_effects, list_missing, write_quality
from .told import write_told
from .vocabulary import Vocabulary, make_vocabulary
from .words import judge, last_name, list_facts, list_provenance, write_headline, write_lede

REASONS = 12  # rejected pieces listed
SMALL = 0.01  # smallest share of a feature with a dependence plot, unless it is a tenth of the largest
FIRST = 3  # features listed for a group of rows
OTHERS = 60  # outputs listed without figures
UNITS = {
    LOSS: "The loss says how wrong the prediction of a {} is. A feature with a negative attribution made it smaller, and so the prediction better.",
}
CELLS = (
    "In tables of a feature’s attributions, 5 % and 95 % are read off the cells that {} are counted in, so they may be off by as much as a cell "
    "is high. Means are exact."
)
Row = Mapping[str, Any]
Summaries = Mapping[str, Sequence[Row]]


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a page."""

    outputs: int  # with own figures
    features: int  # of each output, as bars and strips
    dependences: int  # dependence plots of each output


@dataclass(frozen=True, slots=True)
class Drawn:
    """Counts of an output's first features."""

    names: tuple[str, ...]
    asked: tuple[CountedColumn, ...]
    counts: tuple[Counts, ...]


@dataclass(frozen=True, slots=True)
class Material:
    """Material of a report."""

    run: FinishedRun
    summaries: Summaries  # rows by name of the summary
    drawn: Mapping[str, Drawn]  # by output; empty if the run stores no attributions by row
    rows: tuple[Figure, ...]  # single rows
    names: Names = field(default_factory=Names)
    found: Found | None = None  # what changed since another run, as its drift record says; None without comparison
    histogram: Figure | None = None  # of predictions
    actual: Figure | None = None  # labels against predictions, where labels are known
    made: Provenance | None = None  # provenance of the run, if stored
    told: Told = field(default_factory=Told)  # reasons
    sufficed: tuple[int, ...] = ()  # how often one change would have sufficed, see `count_sufficed`
    effects: Curves | None = None  # effects of its model, if given
    links: tuple[tuple[str, str], ...] = ()  # to other pages: texts and addresses


def _of(rows: Sequence[Row], output: str) -> list[Row]:
    return [row for row in rows if row["output"] == output]


def _figures(material: Material, output: str, limits: Limits, unit: str) -> tuple[Figure, ...]:
    plan, manifest, summaries = material.run.plan, material.run.manifest, material.summaries
    figures: list[Figure | None] = []
    if "importance" in summaries:
        errors = {row["feature"]: row["mean_abs_error"] or 0.0 for row in _of(summaries.get("background_errors", ()), output)}
        figures.append(draw_importance(_of(summaries["importance"], output), manifest.n_rows, unit, errors, limits.features))
    order = METHODS[plan.method].phi.ranks
    figures += [draw_ranks(_of(summaries[name], output), order, limits.features) for name in ("areas", "gaps") if name in summaries]
    if output in material.drawn:
        drawn = material.drawn[output]
        some = slice(limits.features)
        figures.append(draw_swarm(drawn.names[some], drawn.asked[some], drawn.counts[some], unit, material.names))
        rows = _of(summaries["importance"], output)
        least = min(SMALL, max(row["share"] for row in rows) / 10)
        small = {row["feature"] for row in rows if row["share"] < least}
        labels = dict(zip(drawn.names, shorten_names(drawn.names), strict=True))
        units = {material.names.title(name): material.names.unit(name) for name in material.names.features}
        each_of = [each for each in zip(drawn.names, drawn.asked, drawn.counts, strict=True) if each[0] not in small]
        found = (_with_effect(material, output, labels[name], name, asked, counts, unit, units.get(name, "")) for name, asked, counts in each_of)
        fields = [each for each in found if each][: limits.dependences]
        fields.sort(key=lambda each: isinstance(each[0].drawing, Tracks))  # groups planes and boxes
        figures += [figure for field in fields for figure in field]
    if "interactions" in summaries:
        acting = _of(summaries["interactions"], output)
        sizes = {row["feature"]: row["mean_abs"] or 0.0 for row in _of(summaries.get("importance", ()), output)}
        figures += [draw_interactions(acting, unit), draw_sets(acting, unit), draw_network(acting, sizes, unit)]
    if "objective" in summaries:
        figures.append(draw_objective(_of(summaries["objective"], output)))
    if "curves" in summaries:
        figures.append(draw_curves(_of(summaries["curves"], output), unit))
    return tuple(each for each in figures if each is not None)


def _with_effect(
    material: Material, output: str, label: str, name: str, asked: CountedColumn, counts: Counts, unit: str, of_values: str
) -> tuple[Figure, ...]:
    """Draw a feature's attributions by its values, if the run has values, and beside them its effect, where it is known."""
    effects, values = material.effects, asked.values
    rows = [] if effects is None else effects.rows.get((output, name), [])
    ends = (values.edges[0], values.edges[-1]) if values is not None and values.ordered and not values.points else None
    drawn = draw_effect(label, rows, ends, "" if effects is None else effects.space)
    own = draw_dependence(label, asked, counts, unit, of_values, material.names)
    return tuple(figure for figure in (own, drawn) if figure is not None)


def _list_others(material: Material, shown: Sequence[str]) -> Section | None:
    """List the first feature of outputs without figures."""
    rows, others = material.summaries.get("importance", ()), material.run.plan.written_outputs[len(shown) :]
    if not others:
        return None
    first = {row["output"]: row for row in rows if row["rank"] == 1}
    listed = others[:OTHERS]
    found = [first[name] for name in listed if name in first]
    outputs, features = (shorten_names([row[key] for row in found], WHOLE) for key in ("output", "feature"))
    cells = tuple(
        (output, feature, write_number(row["mean_abs"]), write_share(row["share"]))
        for output, feature, row in zip(outputs, features, found, strict=True)
    )
    left = f" Of these, {len(others) - len(listed):,} are left out." if len(listed) < len(others) else ""
    text = f"Figures are of the first {len(shown)} of {len(material.run.plan.written_outputs):,} outputs.{left}"
    tables = (("First feature of each", Table(("output", "first feature", "mean size", "share"), cells)),) if cells else ()
    return Section("others", "Other outputs", (text,), tables=tables)


def _write_outputs(material: Material, limits: Limits, words: Vocabulary) -> list[Section]:
    outputs = material.run.plan.written_outputs
    shown, single = outputs[: limits.outputs], len(outputs) == 1
    sections = []
    plan = material.run.plan
    partial = plan.global_only or not plan.wide
    unit = UNITS.get(plan.space, "").format(words.names.row) if "importance" in material.summaries else ""
    kept = "This run keeps no column of attributions for each feature, so their distribution is not drawn." if partial else ""
    for k, (output, name) in enumerate(zip(shown, shorten_names(shown, 60), strict=True)):
        title = f"What moves {say_moved(plan.space)}" if single else f"What moves output {name}"
        text = tuple(line for line in (unit, kept) if line and not k)
        alone = (material.histogram,) if material.histogram is not None and material.found is None and not k else ()
        figures = (*alone, *_figures(material, output, limits, words.figure_unit))
        if figures or text:
            sections.append(Section(f"output-{k + 1}", title, text, figures=figures, menu="" if single else f"Output {name}"))
    others = _list_others(material, shown)
    return sections + ([others] if others else [])


def _write_r2(
    actual: Figure | None, summaries: Summaries, totals: Mapping[str, Mapping[str, Any]], by: Sequence[str], limits: Limits
) -> Section | None:
    if "r2" not in summaries:
        return None
    said, figures = totals.get("r2", {}), [draw_shares(summaries["r2"], limits.features)]
    if summaries.get("r2_by"):
        figures.append(draw_groups(summaries["r2_by"], by))
    figures += [actual] if actual is not None else []
    names = {
        "total_r2": "R²",
        "total_standard_error": "its standard error",
        "remainder": "what shares leave of it",
        "n_unlabelled": "rows without a label",
    }
    facts = [f"{name} {write_number(said[key])}" for key, name in names.items() if isinstance(said.get(key), int | float)]
    return Section("r2", "How well the model does", (f"{'; '.join(facts)}.",) if facts else (), figures=tuple(figures))


def _write_groups(summaries: Summaries, by: Sequence[str], outputs: Sequence[str], called: str) -> Section | None:
    """Tabulate the first features of groups of rows, largest groups first."""
    rows = summaries.get("importance_by", ())
    if not rows:
        return None
    tables = []
    titles = [f"Groups of {called}"] if len(outputs) == 1 else [f"Output {name}" for name in shorten_names(outputs, 60)]
    for output, title in zip(outputs, titles, strict=True):
        groups: dict[tuple[Any, ...], list[Row]] = {}
        for row in _of(rows, output):
            groups.setdefault(tuple(row[name] for name in by), []).append(row)
        shown = sorted(groups.items(), key=lambda pair: -pair[1][0]["rows"])[:BARS]
        cells = []
        firsts = [sorted(found, key=lambda row: row["rank"])[:FIRST] for _, found in shown]
        features = sorted({row["feature"] for first in firsts for row in first})
        written = dict(zip(features, shorten_names(features), strict=True))
        names = shorten_names([", ".join(write_values(key)) for key, _ in shown], WHOLE)
        for name, (_, found), first in zip(names, shown, firsts, strict=True):
            said = ", ".join(f"{written[row['feature']]} {write_share(row['share'])}" for row in first)
            cells.append((name, f"{found[0]['rows']:,}", write_number(sum(row["mean_abs"] for row in found)), said))
        heads = (" and ".join(by), called, "mean size in all", "first features, and their shares")
        tables.append((title, Table(heads, tuple(cells), say_left_out(len(shown), len(groups), "groups"))))
    return Section("groups", f"What moves predictions by {' and '.join(by)}", tables=tuple(tables))


def _write_sufficed(material: Material) -> Section | None:
    """Say how often a change of one feature would have carried a row across the threshold."""
    reasons = material.run.plan.reasons
    if not material.sufficed or reasons is None or reasons.changes is None:
        return None
    n_rows, n_some, *each = material.sufficed
    asked = reasons.changes
    side = "reach" if reasons.direction == "raises" else "do not reach"
    where = f"{material.names.count(n_rows)} {side} a {asked.space} of {write_number(asked.threshold)}"
    said = f"{where}. A change of one feature alone, all others as they are, would have carried {n_some:,} of them ({_share(n_some, n_rows)}) across."
    limits = "This is what the model says, not what would come of a change in the world: features that go together may not stay as they are."
    names = shorten_names([material.names.title(change.feature) for change in asked.features], WHOLE)
    ordered = sorted(zip(names, each, strict=True), key=lambda pair: -pair[1])
    cells = tuple((name, f"{n:,}", _share(n, n_rows)) for name, n in ordered[:BARS])
    heads = "feature", f"{material.names.rows} that its change would carry across", "share"
    table = Table(heads, cells, say_left_out(len(cells), len(ordered), "features"))
    return Section("changes-of-one", "What would have to change", (said, limits), tables=(("By feature", table),))


def _share(n: int, of: int) -> str:
    return write_share(n / of if of else None)


def _write_rejected(run: FinishedRun) -> Section | None:
    rejected = run.manifest.rejected
    if not rejected:
        return None
    items = tuple(shorten_name(each.reason, 300) for each in rejected[:REASONS])
    text = (f"The first {REASONS} of {len(rejected):,}.",) if len(rejected) > REASONS else ()
    return Section("rejected", "What could not be explained", text, items)


def _write_found(material: Material, limits: Limits, words: Vocabulary, missing: Sequence[str]) -> list[Section | None]:
    """Write the sections of results."""
    run, summaries, found = material.run, material.summaries, material.found
    by = tuple(column.name for column in run.plan.by)
    row = words.names.row
    base = f"base value, where every {row} starts," if run.plan.row_output is None else f"base value of the {row}’s own output"
    rows = Section(
        "rows",
        f"Single {words.names.rows}",
        (f"From the {base} to what the model says of it, the largest step first.",) if run.plan.additive else (),
        figures=material.rows,
    )
    quality = write_quality(run, summaries.get("inputs"), missing, limits.features, words)
    return [
        quality if missing else None,
        _write_r2(material.actual, summaries, run.manifest.totals, by, limits),
        write_losses(summaries, None if found is None else write_worse(found, words), limits.features),
        *_write_outputs(material, limits, words),
        _write_groups(summaries, by, run.plan.written_outputs[: limits.outputs], words.names.rows),
        write_told(run, material.told, words),
        _write_sufficed(material),
        rows if material.rows else None,
        None if missing else quality,
    ]


def _write_features(material: Material) -> Section | None:
    """List what features are called in the data, and what they are."""
    terms = list[tuple[str, str]]()
    for key, name in material.names.features.items():
        called = f"{key}, in {name.unit}." if name.unit else f"{key}."
        terms.append((name.title or key, f"{called} {name.description}".strip()))
    return Section("features", "The features", terms=tuple(terms)) if terms else None


def _say_missing(material: Material, words: Vocabulary) -> tuple[str, ...]:
    """Say by how much missing values move the mean of the first output."""
    output = material.run.plan.written_outputs[0]
    if output not in material.drawn:
        return ()
    drawn, total = material.drawn[output], sum(row["mean_abs"] or 0.0 for row in _of(material.summaries.get("importance", ()), output))
    effects = find_missing_effects(drawn.names, drawn.asked, drawn.counts)
    return list_missing(effects, total, material.found, "" if material.found is None else name_reference(material.found), words)


def _say_alarms(material: Material, words: Vocabulary) -> str:
    if material.found is None:
        return ""
    n, things = len(material.found["alarms"]), len(list_alarms(material.found, words))
    about = "" if things == n else f" about {things:,} things" if things > 1 else " about one thing"
    return f"{count(n, 'alarm')}{about}: see what changed" if n else "No threshold of an alarm is crossed: see what changed"


def compose(material: Material, limits: Limits) -> Page:
    """Compose a page."""
    run, summaries, found = material.run, material.summaries, material.found
    words = make_vocabulary(run.plan, material.names)
    missing = _say_missing(material, words) if run.manifest.n_rows else ()
    moved = None if found is None else write_headline_of_change(found, words)
    histogram = () if material.histogram is None else (material.histogram,)
    of_outputs = _write_found(material, limits, words, missing) if run.manifest.n_rows else []  # summaries of no rows have zeros
    told = [] if found is None else [say_change(found, words)]
    if found is not None and found["space"] != LOSS:
        told += missing[:1]
    cells = (CELLS.format(words.names.rows),) if material.drawn else ()
    sections = [
        None if found is None else write_changes(found, words, histogram),
        _write_rejected(run),
        *of_outputs,
        _write_features(material),
        write_glossary(words, run.plan.additive, found is not None) if run.manifest.n_rows else None,
        Section("provenance", "Where this comes from", cells, terms=list_provenance(run, material.made, words)),
    ]
    name = shorten_name(last_name(run.uri))
    return Page(
        title=f"{name}: report",
        eyebrow=f"Report of {name}" + ("" if found is None else f", compared with {name_reference(found)}"),
        headline=moved or write_headline(run, summaries, words),
        lede=(*told, *write_lede(run, words)),
        verdict=judge(run, words),
        facts=list_facts(run, summaries, words),
        sections=tuple(section for section in sections if section is not None),
        footer="Made by leafledger report from what the run published. leafledger check verifies every byte of it.",
        alarms=_say_alarms(material, words),
        links=material.links,
    )


def read_summaries(run: FinishedRun) -> Summaries:
    """Read all summaries of a run."""
    files = [name_file(entry["uri"]) for entry in run.manifest.summaries]
    found, columns = {}, {INPUTS.name: INPUTS.columns}
    for name in (file.removesuffix(".parquet") for file in files if file.endswith(".parquet")):
        try:
            table = run.summary(name)
            missing = [column for column in columns.get(name, ()) if column not in table.column_names]
            if missing:
                raise ValueError(f"it has no column {missing[0]!r}")
            found[name] = table.to_pylist()
        except (ValueError, KeyError) as error:
            raise InvalidRun(f"{run.uri}/summary/{name}.parquet: is damaged: {' '.join(str(error).split())}") from error
    return found
