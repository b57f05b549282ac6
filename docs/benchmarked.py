"""Tables of what ``make bench`` measured, for the page of benchmarks."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.bench.compare import EXACT, PREDICT
from tests.bench.interactions import OURS
from tests.bench.marginal import named
from tests.bench.ours import BANZHAF, SHAPLEY, WHOLE

RESULTS = Path(__file__).parent / "results.json"  # as `make bench` writes it


def as_table(heads: Sequence[str], rows: Iterable[Sequence[str]], right: bool = False) -> str:
    """A table in Markdown; where ``right``, numbers follow the first column."""
    cells = [list(heads), ["---", *(["---:"] if right else ["---"]) * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in row)} |" for row in cells)


def _rate(speed: dict[str, Any]) -> float:
    return speed["n_rows"] / speed["seconds"]


def _times(ours: float, theirs: float | None) -> str:
    return "" if theirs is None else f"{theirs:,.0f} ({ours / theirs:.3g} ×)"


def _alone(speeds: Iterable[dict[str, Any]]) -> dict[str, float]:
    """Rows per second on one thread, by name."""
    return {speed["name"]: _rate(speed) for speed in speeds if speed["threads"] == 1}


def _compared(found: Sequence[dict[str, Any]]) -> str:
    """Shapley values of the path-dependent game beside every peer."""
    ours = f"{SHAPLEY}: {WHOLE}"
    peers = list(dict.fromkeys(check["peer"] for case in found for check in case["checks"]))
    rows = []
    for case in found:
        rates, exact = _alone(case["speeds"]), {check["peer"]: check["difference"] <= EXACT for check in case["checks"]}
        cells = (_times(rates[ours], rates.get(peer)) if exact.get(peer) else "not exact" if peer in exact else "" for peer in peers)
        rows.append((case["model"], f"{rates[ours]:,.0f}", *cells, f"{rates[f'{BANZHAF}: {WHOLE}']:,.0f}"))
    return as_table(("Shapley values, rows per second", "Leafledger", *peers, "Banzhaf values"), rows, right=True)


def _marginal(found: Sequence[dict[str, Any]]) -> str:
    """The marginal game, at its slowest over all sizes of the background."""
    rows = []
    for case in found:
        rates, peers = _alone(case["speeds"]), {check["peer"] for check in case["checks"]}
        mine = [rate for name, rate in rates.items() if name not in peers and name != PREDICT]
        made, shap = case["preparations"][-1], rates.get(named("shap", 100))
        total = case["total"] and case["total"]["theirs"]["seconds"] / case["total"]["ours"]["seconds"]
        prepared = f"{made['survey'] + made['count'] + made['tables']:.1f} s, {made['n_bytes'] / 1e6:.1f} MB"
        rows.append((case["model"], f"{min(mine):,.0f}", prepared, _times(min(mine), shap), f"{total:.3g} ×" if total else ""))
    heads = ("marginal game, rows per second", "Leafledger", "prepared in", "shap, 100 background rows", "woodelf, everything included")
    return as_table(heads, rows, right=True)


def _interactions(found: Sequence[dict[str, Any]]) -> str:
    """Interactions of every two features, in both games."""
    peers = list(dict.fromkeys(check["peer"] for each in found for check in each["checks"]))
    rows = []
    for each in found:
        rates = _alone(each["speeds"])
        rows.append((f"{each['model']}, {each['game']}", f"{rates[OURS]:,.0f}", *(_times(rates[OURS], rates.get(peer)) for peer in peers)))
    return as_table(("interactions of every two features, with values, rows per second", "Leafledger", *peers), rows, right=True)


def _gaps(found: Sequence[dict[str, Any]]) -> str:
    names = list(found[0]["seconds"])
    rows = ((f"{step['n_trees']} trees of depth {step['depth']}", f"{step['n_leaves']:,}", *_milliseconds(step, names)) for step in found)
    return as_table(("prediction gaps, milliseconds a row", "leaves", *names), rows, right=True)


def _milliseconds(step: dict[str, Any], names: Sequence[str]) -> Iterable[str]:
    return (f"{1e3 * step['seconds'][name]:.3g}" if name in step["seconds"] else "" for name in names)


def _changes(found: Sequence[dict[str, Any]]) -> str:
    rows = ((each["model"], f"{_rate(each['changes']):,.0f}", f"{_rate(each['predict']) / _rate(each['changes']):.1f}") for each in found)
    return as_table(("nearest changes of five features, one thread, rows per second", "Leafledger", "predictions that they take"), rows, right=True)


def _effects(found: Sequence[dict[str, Any]]) -> str:
    rows = (
        (
            f"{each['model']}, {each['n_rows']:,} rows",
            f"{each['n_values']:,}",
            *(_seconds(each[name], each["ours"]) for name in ("ours", "theirs", "woodelf")),
        )
        for each in found
    )
    heads = ("partial dependence of all features at all thresholds, seconds", "values", "Leafledger", "scikit-learn's brute", "woodelf")
    return as_table(heads, rows, right=True)


def _seconds(taken: float | None, ours: float) -> str:
    if taken is None:
        return ""
    times = taken / ours
    written = f"{taken:,.0f}" if taken >= 100 else f"{taken:.2g}"
    return written if taken == ours else f"{written} ({f'{times:,.0f}' if times >= 100 else f'{times:.2g}'} ×)"


def _by_row(found: Sequence[dict[str, Any]]) -> str:
    """Attributions of predictions and losses, with every background, and beside shap."""
    sizes = list(dict.fromkeys(each["n_background"] for each in found))
    rows = []
    for name in dict.fromkeys(each["quantity"] for each in found):
        some = [each for each in found if each["quantity"] == name]
        cells = (f"{_rate(each['ours']):,.0f} ({_rate(each['margin']) / _rate(each['ours']):.1f})" for each in some)
        games = "–".join(dict.fromkeys(str(each["games"]) for each in sorted(some, key=lambda each: each["games"])))
        peer = next((_times(_rate(each["ours"]), _rate(each["theirs"])) for each in some if each["theirs"]), "")
        rows.append((name, games, *cells, peer))
    sized = (f"{n:,} background rows" for n in sizes)
    heads = (
        f"attributions by background row, {found[0]['model']}, one thread, rows per second (times the margin's own time)",
        "weighted backgrounds",
    )
    return as_table((*heads, *sized, f"shap, {sizes[0]:,} background rows"), rows, right=True)


def _usual(found: Sequence[dict[str, Any]]) -> str:
    rows = ((each["model"], f"{_rate(each['ours']):,.0f}", f"{each['peer']} {_times(_rate(each['ours']), _rate(each['theirs']))}") for each in found)
    return as_table(("models as people train them, data frame in, attributions out, rows per second", "Leafledger", "peer"), rows, right=True)


def _runs(found: Sequence[dict[str, Any]]) -> str:
    rows = ((speed["name"], speed["threads"], f"{speed['n_rows']:,}", f"{_rate(speed):,.0f}") for speed in found)
    return as_table(("a whole run, Parquet in and out", "processes", "rows", "rows per second"), rows, right=True)


def benchmarks() -> str:
    """Tables of what ``make bench`` measured."""
    if not RESULTS.exists():
        return "This copy of the documentation has no figures: `make bench` writes `build/bench/results.json`, which belongs in `docs/results.json`."
    results = json.loads(RESULTS.read_text())
    shown = {
        "comparisons": _compared,
        "marginal": _marginal,
        "interactions": _interactions,
        "gaps": _gaps,
        "effects": _effects,
        "changes": _changes,
        "by_row": _by_row,
        "usual": _usual,
        "runs": _runs,
    }
    machine = ", ".join(f"{name} {value}" for name, value in results["machine"].items())
    quick = " with `--quick`: fewer rows, repeats and models" if results["quick"] else ""
    return "\n\n".join((f"Measured by `make bench`{quick}, on: {machine}.", *(show(results[key]) for key, show in shown.items() if results.get(key))))


def bars() -> str:
    """Every figure that ``make bench`` holds against a bar, those that miss theirs first."""
    judged = json.loads(RESULTS.read_text())["bars"] if RESULTS.exists() else []
    met = sum(bar["met"] for bar in judged)
    rows = (
        (
            bar["case"],
            bar["what"],
            f"{bar['measured']:,.3g}",
            f"{'at most' if bar['most'] else 'at least'} {bar['bar']:,.3g}",
            "met" if bar["met"] else "**missed**",
        )
        for bar in sorted(judged, key=lambda bar: bar["met"])
    )
    return f"{met} of {len(judged)} are met.\n\n{as_table(('model', 'figure', 'measured', 'bar', ''), rows)}"
