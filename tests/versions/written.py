"""Files that old versions of the libraries wrote, with what they said of some rows, one archive for each version; and how far we are from that."""

import json
import tarfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

from leafledger import LeafledgerError, attribute, load_ensemble
from leafledger.pipeline.models.model import Model
from tests.variants.variant import BOUNDS

HERE = Path(__file__).parent / "written"
SAID = "said.json"
NAMES = {"xgboost": "XGBoost", "lightgbm": "LightGBM", "catboost": "CatBoost", "scikit-learn": "scikit-learn"}
ROUGHLY = 1e-5  # contributions, in single precision and nine digits
UNSAID_MISSING = "missing=-999"  # the case whose files do not say it since XGBoost 2.0
Case = dict[str, Any]


def archive_path(name: str) -> Path:
    """Where the files of a version are kept."""
    return HERE / f"{name}.tar.xz"


def pack(folder: Path, archive: Path) -> None:
    """Pack a folder's files, the same bytes for the same files."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive, "w:xz", preset=9, format=tarfile.USTAR_FORMAT) as packed:
        for path in sorted(folder.iterdir()):
            entry = tarfile.TarInfo(path.name)
            entry.size = path.stat().st_size
            with path.open("rb") as content:
                packed.addfile(entry, content)


@contextmanager
def unpacked(name: str) -> Iterator[tuple[Path, list[Case]]]:
    """The folder of a version's files, and its cases."""
    with TemporaryDirectory() as folder:
        with tarfile.open(archive_path(name)) as packed:
            packed.extractall(folder, filter="data")
        yield Path(folder), json.loads((Path(folder) / SAID).read_text())


def _rows(model: Model, case: Case) -> pd.DataFrame:
    """Rows as people have them; where the file has no list of categories their codes, which are those of the alphabet."""
    rows = pd.DataFrame(case["rows"], columns=case["columns"])
    for feature in model.features:
        if feature.categorical and feature.categories is None and rows[feature.name].dtype.kind not in "if":
            rows[feature.name] = rows[feature.name].map({letter: code for code, letter in enumerate("pqrst")})
    return rows.astype({name: float for name in rows if rows[name].dtype.kind == "i"})


def _apart(found: np.ndarray, expected: Any) -> float:
    wanted = np.array(expected, float)
    if found.shape != wanted.shape:
        raise AssertionError(f"shape {found.shape}, expected {wanted.shape}")
    return float(np.abs(found - wanted).max() / max(np.abs(wanted).max(), 1e-300))


def find_refusal(name: str, folder: Path, case: Case) -> str | None:
    """Why a file is refused; None where it is explained as the version that wrote it says; AssertionError where it is explained otherwise."""
    bound = BOUNDS[NAMES[name.rpartition("-")[0]]]
    try:
        model = load_ensemble(folder / case["file"])
        if case["case"] == UNSAID_MISSING and model.features[0].missing is None:
            model = load_ensemble(model, missing=-999)
        if "rows" not in case:
            return None
        rows = _rows(model, case)
        with warnings.catch_warnings():  # that a file without names goes by position, as these rows do
            warnings.simplefilter("ignore", UserWarning)
            found = attribute(model, rows)
            likely = attribute(model, rows, space="probability") if "probability" in case else None
    except LeafledgerError as error:
        return str(error).replace(f"{folder}/", "")
    where = f"{name}, {case['case']}"
    assert _apart(found.margin, case["margin"]) <= bound, where
    if "contributions" in case:
        wanted = np.array(case["contributions"], float)
        assert _apart(found.phi[: len(wanted)], wanted[:, :, :-1]) <= ROUGHLY, where
    if likely is not None:
        wanted = np.array(case["probability"], float)
        assert _apart(likely.prediction, wanted[:, -likely.prediction.shape[1] :]) <= bound, where
    return None
