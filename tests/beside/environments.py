"""An environment for every tool: what a user would install, at the versions that the page names."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SHARED = ("psutil", "pyarrow", "pandas")  # what the measuring itself needs


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool, and what its environment holds."""

    name: str
    module: str  # of this package, which uses it
    packages: tuple[str, ...]
    reads_models: bool = True  # of other libraries


TOOLS = (
    Tool("Leafledger", "with_leafledger", (str(ROOT),)),
    Tool("shap", "with_shap", ("shap==0.54.1", "xgboost==3.4.1", "matplotlib")),
    Tool("shapash", "with_shapash", ("shapash[report,xgboost]==2.10.0", "xgboost==3.4.1")),
    Tool("H2O", "with_h2o", ("h2o==3.46.0.12", "matplotlib", "polars"), reads_models=False),
    Tool("Evidently", "with_evidently", ("evidently==0.7.23", "xgboost==3.4.1", "pandas<3")),  # with pandas 3.1 it fails at import
)


@dataclass(frozen=True, slots=True)
class Environment:
    """Where a tool is installed, how many packages came with it, and how many bytes they take."""

    python: Path
    n_packages: int
    n_bytes: int


def make_environment(tool: Tool, folder: Path, python: str) -> Environment:
    """Make the environment of a tool where it is not there, and measure it."""
    mine = folder / "bin" / "python"
    if not (folder / "complete").exists():
        subprocess.run([python, "-m", "venv", "--clear", folder], check=True)
        subprocess.run([mine, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *SHARED, *tool.packages], check=True)
        (folder / "complete").touch()
    packages = [path for path in folder.glob("lib/python*/site-packages/*.dist-info") if not path.name.startswith("pip-")]
    installed = [path for path in folder.glob("lib/python*/site-packages/**/*") if path.is_file() and not path.is_symlink()]
    kept = [path for path in installed if "/site-packages/pip" not in str(path) and path.suffix != ".pyc"]
    return Environment(mine, len(packages), sum(path.stat().st_size for path in kept))
