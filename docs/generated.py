"""Parts of the pages that are made of the code and of measurements, never typed: tables of methods, parameters and packages, figures of speed, and
what became of the papers'."""

import ast
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import leafledger
import leafledger.pipeline.errors
from docs.benchmarked import as_table, bars, benchmarks
from docs.fields import fields
from docs.foreseen import COMPARED, REACHED, compare_runs, count_near, reach
from leafledger.kernels.methods import METHODS, SHARED
from leafledger.kernels.reductions.summary import list_grouped
from leafledger.pipeline.command.terminal.documents import SCHEMAS
from leafledger.pipeline.errors import MEANINGS, LeafledgerError
from leafledger.pipeline.runs.advisories.known import ADVISORIES

SHARED_BY = {
    "interactions": "with `--interactions`",
    "loss": "with `--space loss`",
    "background_errors": "with `--background-errors`",
    "inputs": "all",
}
ROOT = Path(__file__).parents[1]
VERSIONS = Path(__file__).parent / "versions.json"  # as `make versions` writes it
SUPPORTED = Path(__file__).parent / "supported.json"  # as `make supported` writes it
VARIANTS = Path(__file__).parent / "variants.json"  # as `make variants` writes it
SCALE = Path(__file__).parent / "scale.json"  # as `make scale` writes it
FORECASTS = Path(__file__).parent / "forecasts.json"  # as `make bench BENCH=--forecasts` writes results.json
BESIDE = Path(__file__).parent / "beside.json"  # as `python -m tests.beside` writes it
PAPERS = Path(__file__).parent / "papers" / "results.json"  # as `make papers` writes it, pictures beside it


def _default(value: Any) -> str:
    return "" if value in ((), None) else f"`{value:g}`" if isinstance(value, int | float) else f"`{value}`"


def methods() -> str:
    """Every method, what it is, which parameters it takes, and whether it has a marginal game and interactions."""
    rows = (
        (
            f"`{method.name}`",
            method.meaning,
            ", ".join(f"`{parameter.name}`" for parameter in method.parameters),
            "yes" if method.games.background else "",
            "yes" if method.games.value else "",
        )
        for method in METHODS.values()
    )
    return as_table(("method", "what it computes", "parameters", "background", "interactions"), rows)


def put_methods(page: str) -> str:
    """Put the table of methods where a page has its place for it."""
    return re.sub(r"(?<=<!-- methods -->\n).*?(?=<!-- end of methods -->)", lambda _: methods().strip() + "\n", page, flags=re.DOTALL)


def summaries() -> str:
    """Every summary of a run: which methods keep it, what it holds, and its columns."""
    keep: dict[str, list[str]] = {}
    kept = {method.name: dict.fromkeys((*method.summaries, *list_grouped(method.summaries))) for method in METHODS.values()}
    found = {summary.name: summary for some in kept.values() for summary in some} | {summary.name: summary for summary in SHARED}
    for name, some in kept.items():
        for summary in some:
            keep.setdefault(summary.name, []).append(f"`{name}`")
    rows = (
        (
            f"`{name}`",
            ", ".join(keep[name] if name in keep else [SHARED_BY[name]]),
            summary.description,
            ", ".join(f"`{column}`" for column in summary.columns),
        )
        for name, summary in found.items()
    )
    return as_table(("summary", "methods", "what it holds", "columns"), rows)


def parameters(*names: str) -> str:
    """The parameters of methods, with their defaults."""
    several = len(names) > 1
    rows = [
        (*((f"`{name}`",) if several else ()), f"`{parameter.name}`", _default(parameter.default), parameter.meaning)
        for name in names
        for parameter in METHODS[name].parameters
    ]
    return as_table((*(("method",) if several else ()), "parameter", "default", "meaning"), rows)


def packages(name: str) -> str:
    """The packages and modules right below a package, each with the first sentence of what it says of itself."""
    rows = []
    for path in sorted((ROOT / name).iterdir(), key=lambda path: (path.is_file(), path.name)):
        module = path / "__init__.py" if path.is_dir() else path
        if module.suffix == ".py" and module.exists() and path.name != "__init__.py":
            said = " ".join((ast.get_docstring(ast.parse(module.read_text())) or "").split("\n\n")[0].split())
            rows.append((f"`{path.name}/`" if path.is_dir() else f"`{path.name}`", said))
    return as_table(("", "what it holds"), rows)


def exits() -> str:
    """Every exit code of the command, what it means, and the errors that end with it."""
    found = [error for error in vars(leafledger.pipeline.errors).values() if isinstance(error, type) and issubclass(error, LeafledgerError)]
    rows = (
        (f"`{int(code)}`", meaning, ", ".join(f"`{error.__name__}`" for error in found if error.exit_code == code))
        for code, meaning in MEANINGS.items()
    )
    return as_table(("code", "meaning", "errors"), rows)


def documents() -> str:
    """The fields of every document that a command writes with ``--json``."""
    parts = []
    for name, entries in SCHEMAS.items():
        rows = ((f"`{entry.name}`", entry.kind, entry.meaning) for entry in entries)
        parts.append(f"**{name}**\n\n{as_table(('field', 'type', 'meaning'), rows)}")
    return "\n\n".join(parts)


def errors() -> str:
    """Every error, with the exit code of a command that it ends."""
    found = [error for error in vars(leafledger.pipeline.errors).values() if isinstance(error, type) and issubclass(error, LeafledgerError)]
    return as_table(
        ("error", "exit code", "meaning"), ((f"`{error.__name__}`", error.exit_code, " ".join((error.__doc__ or "").split())) for error in found)
    )


def advisories() -> str:
    """Every advisory, the latest first: versions, what was wrong, and of which runs a manifest says so much that they are named."""
    rows = (
        (each.name, f"{each.since} until {each.mended}", each.wrong, each.models, each.library or "any", ", ".join(map(_code, each.methods)) or "any")
        for each in reversed(ADVISORIES)
    )
    return as_table(("advisory", "versions", "what was wrong", "which models and runs", "library", "methods"), rows)


def _code(name: str) -> str:
    return f"`{name}`"


def api(kind: str) -> str:
    """What ``leafledger`` exports of one kind: functions, records or errors."""
    directives = {"functions": "autofunction", "records": "autoclass", "errors": "autoexception"}
    public = {name: getattr(leafledger, name) for name in leafledger.__all__}
    named = [name for name, found in public.items() if _kind(found) == kind]
    return "```{eval-rst}\n" + "".join(f".. {directives[kind]}:: leafledger.{name}\n\n" for name in named) + "```\n"


def serving() -> str:
    """What the modules for other systems export."""
    named = [f"leafledger.{door}.{name}" for door in leafledger._DOORS for name in getattr(leafledger, door).__all__ if name[0].islower()]
    return "```{eval-rst}\n" + "".join(f".. autofunction:: {name}\n\n" for name in named) + "```\n"


def _kind(found: Any) -> str:
    if isinstance(found, type):
        return "errors" if issubclass(found, Exception) else "records"
    return "functions" if callable(found) else "values"


def _paper(figure: dict[str, Any]) -> tuple[str, str]:
    """The paper of a figure, and what its title says after that."""
    before, year, what = re.split(r"(\d{4}), ", figure["title"], maxsplit=1)
    return before + year, what


def verdicts() -> str:
    """Every claim about every figure of the papers, and whether it holds."""
    if not PAPERS.exists():
        return "This copy of the documentation has no figures: `make papers` writes them to `build/papers`, which belongs in `docs/papers`."
    found = json.loads(PAPERS.read_text())
    claims = [claim["verdict"] for figure in found["figures"] for claim in figure["claims"]]
    holding = sum(claim.startswith("holds") for claim in claims)
    machine = ", ".join(f"{name} {value}" for name, value in found["machine"].items())
    said = (
        f"Made by `make papers`{' with `PAPERS=--quick`' if found['quick'] else ''} on {found['date']} in {found['seconds']} s, on: {machine}. "
        f"{len(found['figures'])} figures and tables; {holding} of {len(claims)} claims hold."
    )
    again = [f"{_paper(figure)[1]} ({figure['date']})" for figure in found["figures"] if "date" in figure]
    if again:
        said += f" Drawn again since: {'; '.join(again)}."
    rows = []
    for figure in found["figures"]:
        paper, what = _paper(figure)
        data = f"other: {figure['other_data']}" if figure["other_data"] else "the paper's"
        held = sum(claim["verdict"].startswith("holds") for claim in figure["claims"])
        rows.append((paper, what, data, f"{held} of {len(figure['claims'])}" if figure["claims"] else "nothing claimed"))
    papers = list(dict.fromkeys(row[0] for row in rows))
    rows.sort(key=lambda row: papers.index(row[0]))
    return f"{said}\n\n{as_table(('paper', 'figure', 'data', 'claims that hold'), rows)}"


def _number(value: float | None, digits: str) -> str:
    return "" if value is None else format(value, digits)


def papers(*author: str) -> str:
    """The figures of a paper as tables, what was printed and what came out, and what each must show."""
    figures = json.loads(PAPERS.read_text())["figures"] if PAPERS.exists() else []
    parts = []
    for figure in figures:
        paper, what = _paper(figure)
        if not paper.startswith(" ".join(author)):
            continue
        data = f" On other data than the paper's: {figure['other_data']}." if figure["other_data"] else ""
        rows = [(*line["labels"], *(_number(line["numbers"].get(name), figure["digits"]) for name in figure["columns"])) for line in figure["lines"]]
        parts += [f"**{what}.**{data}", as_table((*figure["headings"], *figure["columns"]), rows, right=True)]
        if (PAPERS.parent / f"{figure['name']}.svg").exists():
            parts.append(f"![{what}](papers/{figure['name']}.svg)")
        parts.append("\n".join(f"* {claim['verdict']}: {claim['text']}" for claim in figure["claims"]))
    return "\n\n".join(part for part in parts if part)


def _apart(value: float | None) -> str:
    return "" if value is None else f"{value:.0e}" if value else "0"


def variants() -> str:
    """Every variant of models, and how far it is from its own library."""
    found = json.loads(VARIANTS.read_text())
    versions = ", ".join(f"{library} {version}" for library, version in found["versions"].items())
    bounds = ", ".join(f"{bound:g} for {library}" for library, bound in found["bounds"].items())
    rows = (
        (*(each[name] for name in ("library", "name", "outputs", "features")), _apart(each["margin"]), _apart(each["contributions"]))
        for each in found["variants"]
    )
    table = as_table(("library", "model", "outputs", "features", "margins", "attributions"), rows)
    return f"{len(found['variants'])} variants, made by `make variants` with {versions}. A test holds all of them below {bounds}.\n\n{table}"


def _spans(some: Sequence[str], every: Sequence[str]) -> str:
    """Versions as spans of those that were run: 1.0.2 to 1.3.3."""
    spans: list[list[str]] = []
    for version in some:
        if spans and every.index(spans[-1][-1]) + 1 == every.index(version):
            spans[-1].append(version)
        else:
            spans.append([version])
    return ", ".join(span[0] if len(span) == 1 else f"{span[0]} to {span[-1]}" for span in spans)


def versions() -> str:
    """Files of every version of each library that was run, which of them are read, and why others are refused."""
    found: dict[str, dict[str, str | None]] = json.loads(VERSIONS.read_text())
    named = {"xgboost": "XGBoost", "lightgbm": "LightGBM", "catboost": "CatBoost"}
    run, rows = dict[str, list[str]](), list[tuple[str, str, str, str]]()
    for name in found:
        run.setdefault(name.rpartition("-")[0], []).append(name.rpartition("-")[2])
    for library, every in run.items():
        for case in dict.fromkeys(case for version in every for case in found[f"{library}-{version}"]):
            written = [version for version in every if case in found[f"{library}-{version}"]]
            right = [version for version in written if found[f"{library}-{version}"][case] is None]
            refused = [version for version in written if version not in right]
            rows.append((named.get(library, library), case, _spans(right, every), _spans(refused, every)))
    said = "; ".join(f"{named.get(library, library)} {', '.join(every)}" for library, every in run.items())
    n_files = sum(map(len, found.values()))
    table = as_table(("library", "file", "as the writer says", "refused"), rows)
    return f"{n_files} files, written by {len(found)} versions: {said}.\n\n{table}"


def supported() -> str:
    """Environments in which chosen tests ran, with which versions, when, and what came out."""
    found = json.loads(SUPPORTED.read_text())
    packages = tuple(dict.fromkeys(name for each in found.values() for name in each["versions"]))
    heads = ("", *(name if name in ("oldest", "newest") else f"pinned, {name}" for name in found))
    told = {"Python": "python", "run on": "date", "tests passed": "passed", "skipped": "skipped"}
    rows = [(head, *(str(each[field]) for each in found.values())) for head, field in told.items()]
    rows.append(("failed", *(str(len(each["failed"])) for each in found.values())))
    rows += [(name, *(each["versions"].get(name, "") for each in found.values())) for name in packages]
    return as_table(heads, rows)


STEPS = {
    "start": "to start",
    "first night": "the night before, with nothing compiled yet",
    "train": "to train a model of its own",
    "explain": "**attributions of every row**, in a file",
    "one process": "the same with `--scheduler serial`",
    "drift": "**what changed since the night before**",
    "report": "**what there is to look at**",
}


def _size(n_bytes: float) -> str:
    units = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
    unit, name = next(((unit, name) for unit, name in units if n_bytes >= unit), (1.0, "bytes"))
    return f"{n_bytes / unit:.3g} {name}"


def _took(tool: dict[str, Any], name: str) -> str:
    step = next((step for step in tool["steps"] if step["name"] == name), None)
    return "" if step is None else f"{step['processor_seconds']:.3g} s ({step['seconds']:.3g} s)"


def _fraction(tool: dict[str, Any], name: str) -> str:
    return "" if tool["values"] is None or tool["values"][name] is None else f"{tool['values'][name]:.0e}"


def beside() -> str:
    """What a night took by each tool, and what there was to look at, side by side."""
    found = json.loads(BESIDE.read_text())
    rows: list[tuple[str, Callable[[dict[str, Any]], str]]] = [
        ("version", lambda tool: next(iter(tool["versions"].values()))),
        ("packages that are installed with it", lambda tool: f"{tool['packages']}, {_size(tool['installed_bytes'])}"),
        *((said, lambda tool, name=name: _took(tool, name)) for name, said in STEPS.items()),
        ("most memory", lambda tool: _size(max(step["peak_bytes"] for step in tool["steps"]))),
        ("files to look at", lambda tool: ", ".join(f"{n} {kind}" for kind, n in tool["report"]["files"].items())),
        ("their size", lambda tool: _size(tool["report"]["n_bytes"])),
        ("of these scripts", lambda tool: _size(tool["report"]["script_bytes"]) if tool["report"]["script_bytes"] else "none"),
        ("requests to other hosts when the page is opened", lambda tool: str(len(tool["report"]["requests"]))),
        ("furthest that attributions are from adding up to the tool's own prediction", lambda tool: _fraction(tool, "residual")),
        ("furthest that they are from Leafledger's, of the same model", lambda tool: _fraction(tool, "apart")),
    ]
    table = ((said, *(write(tool) for tool in found["tools"])) for said, write in rows)
    night, machine = found["night"], ", ".join(f"{name} {value}" for name, value in found["machine"].items())
    model = f"XGBoost, {night['trees']} trees of depth {night['depth']}, {night['features']} features"
    said = f"Measured by `python -m tests.beside`: {night['rows']:,} flights, {model}, on: {machine}."
    return f"{said}\n\n{as_table(('', *(tool['name'] for tool in found['tools'])), table)}"


def _measured(found: dict[str, Any]) -> tuple[str, ...]:
    cell, n = found["cell"], found["cell"]["parts"]
    return (
        f"{cell['workers']:,}",
        f"{n:,} of {cell['work']['seconds']:g} s",
        f"{found['seconds']:.1f} s",
        f"{found['busy']:.0%}",
        f"{1e3 * found['scheduler_cpu'] / n:.2f} ms",
        f"{found['scheduler_cpu'] / found['seconds']:.1%}",
        f"{found['quiet']:.1%}",
        _size(found["scheduler_peak"]),
        f"{1e3 * found['client_cpu'] / n:.2f} ms",
        _size(found["client_peak"]),
        f"{found['late_median']:.2f} s, {found['late_most']:.2f} s",
    )


def scale() -> str:
    """What scheduler and client took for so many parts at so many simulated workers."""
    found = json.loads(SCALE.read_text())
    machine = ", ".join(f"{name} {value}" for name, value in found["machine"].items())
    heads = ("workers", "parts", "took", "workers busy", "scheduler, a part", "share of a core", "without work", "memory")
    table = as_table((*heads, "client, a part", "client's memory", "late"), map(_measured, found["cells"]), right=True)
    said = f"Measured by `make scale` on {found['date']} in {found['seconds']} s, on: {machine}."
    return f"{said} A packed state has {found['cells'][0]['state_bytes']:,} bytes.\n\n{table}"


def forecasts() -> str:
    """Forecasts beside the runs that they are of."""
    found = json.loads(FORECASTS.read_text())
    machine = ", ".join(f"{name} {value}" for name, value in found["machine"].items())
    table = as_table(COMPARED, compare_runs(found["forecasts"]), right=True)
    return f"Measured by `make bench BENCH=--forecasts`, on: {machine}. {count_near(found['forecasts'])}\n\n{table}"


def billion() -> str:
    """What many more rows than were measured would take."""
    return as_table(REACHED, reach(json.loads(FORECASTS.read_text())["forecasts"], _size), right=True)


SHOWN = (
    methods,
    summaries,
    parameters,
    packages,
    exits,
    documents,
    errors,
    advisories,
    api,
    serving,
    benchmarks,
    bars,
    beside,
    scale,
    forecasts,
    billion,
    variants,
    versions,
    supported,
    verdicts,
)
PARTS: dict[str, Callable[..., str]] = {part.__name__: part for part in (*SHOWN, papers, fields)}
