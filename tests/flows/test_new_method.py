"""A method that is declared here alone, with a reduction and a summary of its own, goes through everything: nothing else has to know it."""

import dataclasses
import json
from typing import NamedTuple

import dask.config
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import leafledger
from leafledger.flows.explain import explain as explain_by_flow
from leafledger.kernels.game_values import Quadrature
from leafledger.kernels.method.method import ADDITIVE, Games, Method, Phi
from leafledger.kernels.method.parameters import number
from leafledger.kernels.methods import METHODS
from leafledger.kernels.reductions.reduction import Reduction
from leafledger.kernels.reductions.summary import Shown, Summary, Table
from leafledger.kernels.trees.paths import empty_coalition
from leafledger.pipeline.command import cli
from tests.flows.reading import contents
from tests.pipeline.forking import forked_workers


class Largest(NamedTuple):
    """Of every player the largest attribution by size."""

    size: np.ndarray  # (outputs, players) float64


def tabulate(state, subject):
    size = np.zeros((len(subject.outputs), len(subject.players)))
    size[:, subject.place] = state.size
    named = {"output": np.repeat(subject.outputs, len(subject.players)).tolist(), "feature": [*subject.players] * len(subject.outputs)}
    rank = np.argsort(np.argsort(-size, axis=1, kind="stable"), axis=1) + 1
    return {"largest": Table({**named, "largest": size.reshape(-1), "rank": rank.reshape(-1)}, {"overall": float(size.max())})}


LARGEST = Summary(
    name="largest",
    reduction=Reduction(
        name="largest",
        init=lambda outputs, values: Largest(np.zeros((outputs, values))),
        update=lambda state, phi, n, labels: Largest(np.maximum(state.size, np.abs(phi[:, :, :n]).max(axis=2, initial=0.0))),
        merge=lambda a, b: Largest(np.maximum(a.size, b.size)),
        finalize=lambda state, place, n_places: state.size,
    ),
    reads=lambda buffers: buffers.phi,
    tabulate=tabulate,
    columns=("output", "feature", "largest", "rank"),
    description="the largest attribution of every feature",
    display=(Shown("rank", "rank", "d"), Shown("feature", "feature"), Shown("largest", "largest |phi|", ".4g")),
    headline=lambda totals: f"no attribution is larger than {totals['overall']:.4g}",
)


def attribute(buffers, tables):
    """What a row's margin is above the base value, in parts that fall off by a factor from player to player."""
    share = tables.weights / tables.weights.sum()
    buffers.phi[:] += share[None, :, None] * (buffers.margin - tables.nodes[:, None])[:, None]


FALLING = Method(
    name="falling",
    meaning="a test's own method: the margin in parts that fall off from feature to feature",
    games=Games(
        lambda forest, given: Quadrature(empty_coalition(forest.ensemble, forest.trace), given["factor"] ** np.arange(float(forest.n_players)))
    ),
    kernel=attribute,
    parameters=(number("factor", 0.5, 0.0, 1.0, "of each part to the one before it"),),
    phi=Phi(column="part"),
    check=ADDITIVE,
    summaries=(LARGEST,),
)


def dask_setup(worker):
    """Declare the method in a worker, which Dask calls when it has loaded this file."""
    METHODS[FALLING.name] = FALLING


@pytest.fixture
def declared(monkeypatch):
    """The method is one of METHODS, here and in workers, for the time of a test; these are forked of a process that has imported everything."""
    monkeypatch.setitem(METHODS, FALLING.name, FALLING)
    with dask.config.set({"distributed.worker.preload": [__file__]}), forked_workers():
        yield


def test_it_runs_like_any_other(declared, example, tmp_path):
    """Planned, explained serially and on two workers to the same bytes, checked to the last byte; its summary and totals are those of its rows."""
    given = {"method": "falling", "parameters": {"factor": 0.25}, "precision": "float64", "ids": ["flight"]}
    manifest = leafledger.explain(example.model, example.data, tmp_path / "serial", scheduler="serial", **given)
    leafledger.explain(example.model, example.data, tmp_path / "two", workers=2, **given)
    assert contents(tmp_path / "serial") == contents(tmp_path / "two")
    assert leafledger.check_run(str(tmp_path / "serial"), deep=True).residual < 1e-9
    rows = pd.read_parquet(tmp_path / "serial" / "attributions")
    parts = rows[[name for name in rows if name.startswith("part_")]]
    assert_allclose(parts.sum(axis=1) + manifest.base[0], rows["margin"], rtol=1e-12)
    used = parts.columns[(parts != 0).any()]
    assert_allclose(parts[used[1]], parts[used[0]] * 0.25, rtol=1e-12)
    summary = pd.read_parquet(tmp_path / "serial" / "summary" / "largest.parquet").set_index("feature")
    assert_allclose(summary["largest"], parts.abs().max().to_numpy(), rtol=1e-12)
    assert_allclose(manifest.totals["largest"]["overall"], parts.abs().to_numpy().max(), rtol=1e-12)
    assert not (tmp_path / "serial" / "summary" / "importance.parquet").exists()


def test_a_breach_of_its_promise_stops_the_run(declared, example, tmp_path, monkeypatch):
    """Its check is the one that it declares."""

    def wrong(buffers, tables):
        attribute(buffers, tables)
        buffers.phi[0, 0, 3] += 1.0

    monkeypatch.setitem(METHODS, "falling", dataclasses.replace(FALLING, kernel=wrong))
    with pytest.raises(leafledger.LeafledgerError, match="row 3: attributions miss margin - base value"):
        leafledger.explain(example.model, example.data, tmp_path / "run", method="falling", scheduler="serial")


def test_the_command_knows_it(declared, example, tmp_path, capsys):
    """Help lists it with its meaning and parameters, plan names it, and explain shows its headline and its table."""
    assert cli.main(["explain", "--help"]) == 0
    said = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "falling" in said
    assert "factor" in said
    given = [
        example.model,
        example.data,
        "--out",
        str(tmp_path / "run"),
        "--method",
        "falling",
        "--parameter",
        "factor=0.125",
        "--scheduler",
        "serial",
    ]
    assert cli.main(["plan", *given]) == 0
    assert "falling factor=0.125" in capsys.readouterr().out
    assert cli.main(["explain", *given]) == 0
    said = capsys.readouterr().out
    assert "no attribution is larger than" in said
    assert "largest |phi|" in said


def test_rows_in_memory_have_it(declared, example, tmp_path):
    """With the table that a run publishes."""
    leafledger.explain(example.model, example.data, tmp_path / "run", method="falling", scheduler="serial")
    rows = pd.read_parquet(example.data)
    found = leafledger.attribute(example.model, rows, "falling")
    assert_allclose(found.phi.sum(axis=2) + found.base, found.margin, rtol=1e-12)
    published = json.loads((tmp_path / "run" / "summary" / "largest.json").read_text())
    assert_allclose(found.summaries["largest"]["largest"], [row["largest"] for row in published], rtol=1e-12)
    assert found.totals["largest"]["overall"] == max(row["largest"] for row in published)


def test_the_flow_runs_it(declared, server, example, tmp_path):
    """To the bytes of a plain run."""
    leafledger.explain(example.model, example.data, tmp_path / "run", method="falling", scheduler="serial")
    state = explain_by_flow(example.model, example.data, str(tmp_path / "flow"), method="falling", scheduler="serial", return_state=True)
    assert state.is_completed()
    assert contents(tmp_path / "flow") == contents(tmp_path / "run")
