"""``python -m tests.wheel .venv-wheel``: an environment of the wheel alone explains files of every library, and says what is missing."""

import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import pandas as pd

from tests.worker import list_packages, run, write_models

ROOT = Path(__file__).parents[1]
NAMES = "import importlib.metadata, sys, leafledger; print(leafledger.__file__, leafledger.__version__, importlib.metadata.version('leafledger'))"
ATTRIBUTE = """
import sys, numpy, pandas, leafledger
for model in sys.argv[2:]:
    found = leafledger.attribute(model, pandas.read_parquet(sys.argv[1]))
    print(model, found.phi.shape, numpy.allclose(found.phi.sum(2) + found.base, found.margin), len(found.to_frame()))
foreign = {"catboost", "lightgbm", "prefect", "s3fs", "sklearn", "skops", "xgboost"} & set(sys.modules)
assert not foreign, foreign
"""
TO_SHAP = "import sys, leafledger, pandas; leafledger.attribute(sys.argv[1], pandas.read_parquet(sys.argv[2])).to_shap()"


def call(python: Path, program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """A program of Python, run away from this checkout."""
    command = [str(python), "-I", "-c", program, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tempfile.gettempdir())


def check_packages(python: Path) -> None:
    """Nothing that an extra brings is there, and the package is the installed one."""
    packages, size = list_packages(python)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    brought = {line.partition(">")[0].partition("[")[0] for lines in extras.values() for line in lines} - {"leafledger"}
    assert not brought & packages, f"{python}: {sorted(brought & packages)} are installed"
    done = call(python, NAMES)
    where, *versions = done.stdout.split()
    assert Path(where).is_relative_to(python.parents[1]), f"imported from {where}, not from {python.parents[1]}"
    assert {run(python, "--version").strip(), *versions} == {versions[0]}, f"{versions} are versions of one wheel"
    print(f"{len(packages)} packages, {size / 1e6:,.0f} MB: {', '.join(sorted(packages))}")


def check_models(python: Path, models: list[Path], rows: Path) -> None:
    """In Python: rows are attributed by the file of every library, which is not there."""
    done = call(python, ATTRIBUTE, rows, *models)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    for model, said in zip(models, done.stdout.splitlines(), strict=True):
        assert said.startswith(f"{model} "), said
        assert " True " in said, said
        print(f"{model.name}: {said.removeprefix(f'{model} ')}")


def check_run(python: Path, model: Path, folder: Path) -> None:
    """By the command: a folder is explained, checked, shown, compared with another run and reported."""
    for name in ("run", "other"):
        print(run(python, "explain", model, folder / "data", "--out", folder / name, "--threads", "2"))
    print(run(python, "check", folder / "run", "--deep"))
    run(python, "drift", folder / "other", "--against", folder / "run", "--scheduler", "serial")
    run(python, "report", folder / "run", "--scheduler", "serial")
    assert (folder / "run" / "report" / "index.html").exists()
    run(python, "completion", "bash")
    assert "deploy" in run(python, "--help")


def check_missing(python: Path, model: Path, folder: Path) -> None:
    """What is not there is one line with the extra that brings it, before anything is written."""
    rows, never = folder / "data", ["--out", folder / "never" / "{date}", "--date", "2026-11-22"]
    (folder / "delta" / "_delta_log").mkdir(parents=True)
    (folder / "delta" / "_delta_log" / "00000000000000000000.json").write_text("{}")
    deployed = [model, rows, "--out", f"{folder}/{{date}}", "--cron", "0 3 * * *"]
    asked = [
        (["explain", model, "s3://bucket/rows", *never], "s3://bucket/rows needs s3fs", "s3"),
        (["explain", "s3://bucket/model.ubj", rows, *never], "s3://bucket/model.ubj needs s3fs", "s3"),
        (["explain", model, rows, "--out", "s3://bucket/never"], "s3://bucket/never needs s3fs", "s3"),
        (["check", "s3://bucket/run"], "s3://bucket/run needs s3fs", "s3"),
        (["explain", model, "gs://bucket/rows", *never], "gs://bucket/rows needs gcsfs", "gcs"),
        (["explain", model, "abfs://bucket/rows", *never], "abfs://bucket/rows needs adlfs", "azure"),
        (["inspect", "https://example.com/model.ubj"], "https://example.com/model.ubj needs aiohttp", "http"),
        (["explain", "models:/late/1", rows, *never], "models:/late/1 needs mlflow", "mlflow"),
        (["explain", model, folder / "delta", *never], f"{folder}/delta: a Delta table needs deltalake", "delta"),
        (["explain", model, "iceberg:nights.prod.flights", *never], "iceberg:nights.prod.flights: an Iceberg table needs pyiceberg", "iceberg"),
        (["explain", model, rows, *never, "--metrics-file", folder / "x.prom"], "metrics_file needs prometheus_client", "metrics"),
        (["explain", model, rows, *never, "--lineage", folder / "x.ndjson"], "lineage needs openlineage", "lineage"),
        (["deploy", *deployed], "deploy needs prefect", "flows"),
        (["explain", model, rows, *never, "--workers", "2"], "a local cluster of workers needs cryptography", "tls"),
        (["certificates", folder / "tls"], "leafledger certificates needs cryptography", "tls"),
        (["explain", model, rows, *never, "--device", "cuda"], "device 'cuda' needs numba_cuda", "cuda"),
    ]
    for arguments, what, extra in asked:
        check_line(what, extra, run(python, *arguments, code=2))
    served = subprocess.run([python, "-m", "leafledger.flows.serve", *map(str, deployed)], capture_output=True, text=True, check=False, cwd=folder)
    assert (served.returncode, served.stdout) == (2, ""), served
    check_line("python -m leafledger.flows.serve needs prefect", "flows", served.stderr)
    last = call(python, TO_SHAP, model, rows).stderr.splitlines()[-1]
    assert last.endswith("UsageError: to_shap needs shap: pip install 'leafledger[shap]'"), last
    assert not (folder / "never").exists()


def check_line(what: str, extra: str, said: str) -> None:
    """A command said it, and nothing else."""
    expected = f"leafledger: {what}: pip install 'leafledger[{extra}]'\n"
    assert said == expected, f"said {said!r}, expected {expected!r}"
    print(said.strip())


def main() -> None:
    """Check packages, models, a run, and what is said of what is missing."""
    python = Path(sys.argv[1]).absolute() / "bin" / "python"
    check_packages(python)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        models, rows = list(write_models(folder)), pd.read_parquet(folder / "rows.parquet")
        (folder / "data").mkdir()
        for number, part in enumerate((rows[:150], rows[150:])):
            part.to_parquet(folder / "data" / f"{number}.parquet", index=False)
        check_models(python, models, folder / "rows.parquet")
        check_run(python, models[0], folder)
        check_missing(python, models[0], folder)


if __name__ == "__main__":
    main()
