"""Which pages there are, and what a reader of them has at hand: the demo's flights and models, and an object store that holds some of them."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from rich.console import Console

from infra.demo import FOLDER, make_inputs
from tests.moto_store import run_moto

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
TYPED = [page for page in PAGES if page != ROOT / "docs" / "week.md"]  # which takes a Prefect server, and tests/flows/test_week.py
SIZES = Path("infra/kubernetes/sizes.py")
OBJECTS = {"flights/month=2/flights.parquet": "flights", "models/xgboost.ubj": "models"}  # below the demo's folder, and the bucket


@cache
def find_inputs() -> Path:
    """The folder of the demo's inputs in the repository, where they are made once."""
    make_inputs(ROOT / FOLDER, Console(stderr=True))
    return ROOT / FOLDER


def make_folder(folder: Path) -> Path:
    """A folder with the demo's inputs where ``make demo`` puts them, and what a reader runs of the repository."""
    (folder / SIZES).parent.mkdir(parents=True)
    shutil.copy(ROOT / SIZES, folder / SIZES)
    for name in ("flights", "models"):
        shutil.copytree(find_inputs() / name, folder / FOLDER / name)
    return folder


@contextmanager
def serve_objects() -> Iterator[None]:
    """A server of S3's interface with a bucket of flights, one of models and an empty one, and an environment that leads to it."""
    import s3fs

    with run_moto() as url:
        before = dict(os.environ)
        os.environ.update(AWS_ENDPOINT_URL=url, AWS_ACCESS_KEY_ID="reader", AWS_SECRET_ACCESS_KEY="reader", AWS_DEFAULT_REGION="us-east-1")
        s3fs.S3FileSystem.clear_instance_cache()
        filesystem = s3fs.S3FileSystem()
        for bucket in (*dict.fromkeys(OBJECTS.values()), "explained"):
            filesystem.mkdir(bucket)
        for path, bucket in OBJECTS.items():
            filesystem.put_file(str(find_inputs() / path), f"{bucket}/{path.split('/', 1)[1]}")
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)
            s3fs.S3FileSystem.clear_instance_cache()
