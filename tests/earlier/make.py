"""Runs of one small night, as the version of leafledger that is imported makes them: ``python tests/earlier/make.py FOLDER``, once for every version.

What tests read for ever lies in ``runs/VERSION``, one folder for every kind of run. Only runs of the version that is in the making are made again;
those of versions that were released stay as that version wrote them. To make runs of an old version, check it out, and give Python its folder first,
with a ``leafledger-VERSION.dist-info/METADATA`` in it, by which it knows its version.
"""

import shutil
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent
INPUTS = HERE / "inputs"  # models, data of two nights, and a background
NIGHT = Path("/tmp/earlier")  # where runs are made: plans name it
MODEL, CLASSES = NIGHT / "model.txt", NIGHT / "classes.ubj"
DATA, NEXT, BACKGROUND = NIGHT / "data", NIGHT / "next", NIGHT / "background"
PARTITION = {"both": ["a", "b"]}
REASONS = {
    "direction": "raises",
    "never": ["b"],
    "default": {"text": "{feature} is {value}"},
    "reason": [{"feature": "a", "code": "A", "text": "large", "above": 0}],
}
KINDS = {  # by name: the model, and what is asked for
    "plain": (MODEL, {"ids": ["id"]}),
    "pairs": (MODEL, {"interactions": 2, "partition": PARTITION, "ids": ["id"]}),
    "shares": (MODEL, {"method": "r2", "label": "y", "weight": "w", "by": ["k"], "ids": ["id"]}),
    "marginal": (MODEL, {"background": str(BACKGROUND), "method": "beta", "parameters": {"alpha": 2.0}}),
    "owen": (MODEL, {"method": "owen", "partition": PARTITION}),
    "steps": (MODEL, {"method": "ranker", "parameters": {"steps": 3}}),
    "ranks": (MODEL, {"method": "curves", "precision": "float64"}),
    "gaps": (MODEL, {"method": "gap", "ids": ["id"]}),
    "classes": (CLASSES, {"ids": ["id"]}),
    "sums": (MODEL, {"global_only": True}),
}
SINCE_2 = {
    "told": (CLASSES, {"space": "probability", "top": 2, "columns": "both", "values": True, "ids": ["id"], "reasons": REASONS, "by": ["k"]}),
    "predicted": (CLASSES, {"output": "predicted", "ids": ["id"]}),
    "errors": (MODEL, {"background": str(BACKGROUND), "background_errors": True, "ids": ["id"]}),
    "digested": (MODEL, {"ids": ["id"], "digest_inputs": True, "values": True}),
    "replaced": (MODEL, {"method": "banzhaf", "ids": ["id"]}),
    "missing": (MODEL, {"missing": -1.0, "ids": ["id"]}),
}


def make_runs(folder: Path) -> None:
    """Make a run of every kind that this version knows."""
    shutil.rmtree(NIGHT, ignore_errors=True)
    shutil.copytree(INPUTS, NIGHT)
    old = version("leafledger").startswith("0.1.")
    package = import_module("pipeline" if old else "leafledger")  # 0.1 had no package by its own name
    explain = package.explain
    for name, (model, asked) in {**KINDS, **({} if old else SINCE_2)}.items():
        out = NIGHT / "runs" / name
        if name == "replaced":
            explain(model, DATA, out, ids=["id"], scheduler="serial")
            asked = {**asked, "if_changed": "replace"}
        if name == "plain":
            asked = {**asked, "latest": str(NIGHT / "runs" / "latest.json"), "date": "2026-03-02"}
        explain(model, DATA, out, scheduler="serial", **asked)
    if not old:
        explain(MODEL, NEXT, NIGHT / "runs" / "next", ids=["id"], digest_inputs=True, values=True, scheduler="serial")
        package.drift(NIGHT / "runs" / "next", against=NIGHT / "runs" / "digested")
        package.report(NIGHT / "runs" / "next")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(NIGHT / "runs", folder, ignore=shutil.ignore_patterns("*.lock", "_leafledger"))


if __name__ == "__main__":
    make_runs(Path(sys.argv[1]))
