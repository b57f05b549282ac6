"""An environment for every version of a library, with the Python and the packages of its time."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SUPPORT = ("python-dateutil", "pytz", "tzdata", "six", "joblib", "threadpoolctl", "cloudpickle", "packaging", "setuptools<70")
OF_TIME = {  # packages by Python
    "3.8": ("numpy==1.19.5", "scipy==1.5.4", "pandas==1.1.5"),
    "3.10": ("numpy==1.23.5", "scipy==1.9.3", "pandas==1.5.3"),
    "3.12": ("numpy==2.2.6", "scipy==1.15.3", "pandas==2.3.3"),
}
OLD_TREES, TREES, NEW_TREES = "scikit-learn==0.24.2", "scikit-learn==1.2.2", "scikit-learn==1.6.1"  # that estimators of other libraries need
PLOTS = ("graphviz", "plotly==5.24.1", "tenacity")  # that CatBoost imports
SKOPS = ("huggingface_hub", "requests", "tqdm", "tabulate", "filelock", "typing_extensions", "pyyaml", "urllib3", "idna", "certifi", "fsspec")
MORE_SKOPS = (*SKOPS, "charset-normalizer", "prettytable", "wcwidth", "narwhals")
OLDER, OLD = ("numpy==1.26.4",), OF_TIME["3.10"]
LATER = ("numpy==1.26.4", "scipy==1.11.4", "pandas==2.3.3")


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a library, the Python it is run by, and packages beside it, each as an installer takes it; later ones replace earlier ones."""

    library: str
    version: str
    python: str
    packages: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """As its environment and its file of models are called."""
        return f"{self.library}-{self.version}"

    @property
    def installed(self) -> tuple[str, ...]:
        """All packages of its environment."""
        every = (*OF_TIME[self.python], *SUPPORT, *self.packages)
        return (f"{self.library}=={self.version}", *{each.partition("==")[0]: each for each in every}.values())


def _of(library: str, python: str, versions: str, *packages: str) -> tuple[Version, ...]:
    return tuple(Version(library, version, python, packages) for version in versions.split())


VERSIONS = (
    *_of("xgboost", "3.8", "1.0.2 1.1.1 1.2.1 1.3.3 1.4.2 1.5.2", OLD_TREES),
    *_of("xgboost", "3.10", "1.6.2 1.7.6 2.0.3", TREES),
    *_of("xgboost", "3.12", "2.1.4 3.0.5 3.1.3 3.2.0 3.3.0 3.4.1", NEW_TREES),
    *_of("lightgbm", "3.8", "2.2.3 2.3.1 3.0.0 3.1.1", OLD_TREES),
    *_of("lightgbm", "3.10", "3.2.1 3.3.5 4.0.0 4.1.0", TREES, "wheel"),
    *_of("lightgbm", "3.12", "4.2.0 4.3.0 4.4.0 4.5.0 4.6.0 4.7.0", NEW_TREES, "narwhals"),
    *_of("catboost", "3.8", "1.0.0 1.0.6", *PLOTS),
    *_of("catboost", "3.10", "1.1.1 1.2 1.2.2 1.2.3", *PLOTS),
    *_of("catboost", "3.12", "1.2.5 1.2.7", *PLOTS, *OLDER),
    *_of("catboost", "3.12", "1.2.8 1.2.10", *PLOTS),
    *_of("scikit-learn", "3.8", "1.1.3", "skops==0.4.0", *MORE_SKOPS, *OLD),
    *_of("scikit-learn", "3.8", "1.2.2", "skops==0.6.0", *MORE_SKOPS, *OLD),
    *_of("scikit-learn", "3.10", "1.3.2", "skops==0.9.0", *MORE_SKOPS),
    *_of("scikit-learn", "3.10", "1.4.2", "skops==0.10.0", *MORE_SKOPS, *LATER),
    *_of("scikit-learn", "3.12", "1.5.2", "skops==0.11.0", *MORE_SKOPS),
    *_of("scikit-learn", "3.12", "1.6.1", "skops==0.12.0", *MORE_SKOPS),
    *_of("scikit-learn", "3.12", "1.7.2", "skops==0.13.0", *MORE_SKOPS),
    *_of("scikit-learn", "3.12", "1.8.0", "skops==0.14.0", *MORE_SKOPS),
    *_of("scikit-learn", "3.12", "1.9.1", "skops==0.16.0", *MORE_SKOPS),
)


def find_python(version: str) -> Path:
    """Find pyenv's newest Python of a version."""
    latest = subprocess.run(["pyenv", "latest", version], capture_output=True, text=True, check=False)
    if latest.returncode:
        raise SystemExit(f"pyenv has no Python {version}: pyenv install {version}")
    prefix = subprocess.run(["pyenv", "prefix", latest.stdout.strip()], capture_output=True, text=True, check=True)
    return Path(prefix.stdout.strip()) / "bin" / "python"


def make_environment(version: Version, folder: Path, uv: str) -> Path:
    """Make the environment of a version where it is not there with these packages, and return its Python; without libraries of graphics cards."""
    mine, complete, packages = folder / version.name / "bin" / "python", folder / version.name / "complete", "\n".join(version.installed)
    if not complete.exists() or complete.read_text() != packages:
        subprocess.run([uv, "venv", "--quiet", "--clear", "--python", find_python(version.python), folder / version.name], check=True)
        subprocess.run([uv, "pip", "install", "--quiet", "--no-deps", "--python", mine, *version.installed], check=True)
        complete.write_text(packages)
    return mine
