"""What ``make papers`` leaves behind: numbers of every figure as Parquet, a picture where it says more, and all of it as JSON for the pages."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.papers.figures import Claim, Figure
from tests.papers.plots import draw_plot

LONGEST = 90  # characters of a file's name
RESULTS = "results.json"
VERDICTS = {(True, False): "holds", (False, False): "FAILS", (True, True): "holds, on other data", (False, True): "FAILS, on other data"}
Drawn = tuple[Figure, list[Claim]]


def verdict(figure: Figure, claim: Claim) -> str:
    """Whether a claim holds, and whether that is on the paper's own data or on others, where no more than an ordering can be claimed."""
    return VERDICTS[claim.holds, bool(figure.other_data)]


def name_of(figure: Figure) -> str:
    """The figure's title as the name of a file."""
    return re.sub(r"[^a-z0-9]+", "-", figure.title.lower().replace("²", "2")).strip("-")[:LONGEST].strip("-")


def columns_of(figure: Figure) -> list[str]:
    """Columns of numbers, ours last."""
    columns = list(dict.fromkeys(name for line in figure.lines for name in line.numbers))
    return sorted(columns, key=lambda name: name.startswith("ours"))


def _labels(values: Sequence[int | float | str]) -> list[int | float | str]:
    """All numbers, or all texts."""
    return list(values) if len({type(value) for value in values}) == 1 else [str(value) for value in values]


def to_table(figure: Figure) -> pa.Table:
    """Labels, then numbers as float64, null where a line has none; the title is in the schema."""
    found: dict[str, Any] = {heading: _labels([line.labels[k] for line in figure.lines]) for k, heading in enumerate(figure.headings)}
    for column in columns_of(figure):
        found[column] = pa.array([line.numbers.get(column) for line in figure.lines], pa.float64())
    return pa.table(found).replace_schema_metadata({"title": figure.title, "data": figure.other_data or "the paper's"})


def _entry(drawn: Drawn) -> dict[str, Any]:
    figure, claims = drawn
    said = [{"text": claim.text, "verdict": verdict(figure, claim)} for claim in claims]
    return {"name": name_of(figure), **asdict(figure), "columns": columns_of(figure), "claims": said}


def save(folder: Path, drawn: Iterable[Drawn], about: dict[str, Any]) -> Path:
    """Write everything into a folder; what it says of the run stands in ``about``."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = list(drawn)
    names = [name_of(figure) for figure, _ in drawn]
    if len(set(names)) < len(names):
        raise ValueError(f"two figures of one name, expected names that differ: {sorted(name for name in names if names.count(name) > 1)}")
    for name, (figure, _) in zip(names, drawn, strict=True):
        pq.write_table(to_table(figure), folder / f"{name}.parquet")
        if figure.plot:
            (folder / f"{name}.svg").write_text(draw_plot(figure))
    path = folder / RESULTS
    path.write_text(json.dumps({**about, "figures": [_entry(some) for some in drawn]}, indent=1, ensure_ascii=False, default=float) + "\n")
    return path
