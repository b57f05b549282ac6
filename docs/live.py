"""Pages to look at, published with the documentation: reports of the demo's first months, and the overview of them.

``python -m docs.live`` makes them below ``build/docs/live``, which ``docs/conf.py`` publishes."""

import shutil
import tempfile
from pathlib import Path

from rich.console import Console

from infra.demo import FOLDER, IDS, make_inputs
from leafledger import explain, list_runs, report
from leafledger.pipeline.report.overview import save_index

PUBLISHED = Path(__file__).parents[1] / "build" / "docs" / "live"
MONTHS = ("2013-01", "2013-02", "2013-03")


def write_pages(data: Path, model: Path, folder: Path) -> None:
    """Explain months, each compared with the one before, and keep nothing but their reports and the overview, by names below the checkout."""
    with tempfile.TemporaryDirectory() as made:
        nights = Path(made) / "flights"
        for month, name in enumerate(MONTHS, 1):
            explain(model, data / f"month={month}", nights / name, ids=list(IDS), values=True, interactions=3, scheduler="serial")
            report(nights / name, against=nights / MONTHS[month - 2] if month > 1 else None, scheduler="serial")
        save_index(str(nights / "index.html"), str(nights), list_runs(nights))
        for page in ("index.html", *(f"{name}/report/index.html" for name in MONTHS)):
            (folder / page).parent.mkdir(parents=True, exist_ok=True)
            (folder / page).write_text((nights / page).read_text().replace(f"{made}/", "").replace(f"{Path.cwd()}/", ""))


def main() -> None:
    """Make the pages anew."""
    data, (_, lightgbm, _) = make_inputs(FOLDER, Console(stderr=True))
    shutil.rmtree(PUBLISHED, ignore_errors=True)
    write_pages(data, lightgbm, PUBLISHED / "live")


if __name__ == "__main__":
    main()
