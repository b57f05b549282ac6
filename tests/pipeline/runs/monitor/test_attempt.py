"""An attempt knows when it began, and how long its stages took, whether they ended well or not."""

import time
from datetime import UTC, datetime, timedelta

import pytest

from leafledger.pipeline.errors import ClusterLost
from leafledger.pipeline.progress import no_progress
from leafledger.pipeline.runs.monitor.attempt import Attempt
from leafledger.pipeline.runs.stages import map_run
from tests.pipeline.running import ready


def test_stages_add_up():
    attempt = Attempt()
    assert timedelta() <= datetime.now(UTC) - attempt.started < timedelta(seconds=10)
    for _ in range(2):
        with attempt.stage("planning"):
            time.sleep(0.02)
    with pytest.raises(ValueError, match="no"), attempt.stage("explaining"):
        raise ValueError("no")
    assert list(attempt.seconds) == ["planning", "explaining"]
    assert attempt.seconds["planning"] >= 0.04 > attempt.seconds["explaining"]


def test_what_was_not_done_is_said_as_text():
    """Names and what a server answers may hold line ends, which would begin lines of a log."""
    attempt, said = Attempt(), []
    with attempt.heard(said.append):
        attempt.warned.append("away\nINFO all is well \x1b[31m")
    assert said == ["away\\nINFO all is well \\x1b[31m"]


def lost_at(n_parts):
    """Shows so many parts, and ends with the cluster."""

    def begin(work):
        done = []

        def on_done(piece):
            done.append(piece)
            if len(done) == n_parts:
                raise ClusterLost("it went away")

        return on_done

    return begin


def test_counts_begin_anew_with_every_try(example, tmp_path):
    """Prefect tries again where a cluster is lost: what the first try made is found by the next one, and no row counts twice."""
    (run, tables), attempt = ready(example, tmp_path / "run"), Attempt()
    with pytest.raises(ClusterLost):
        map_run(run, tables, attempt.follow(lost_at(3)))
    assert (attempt.made, attempt.found) == (3, 0)
    explained = map_run(run, tables, attempt.follow(no_progress))
    assert (attempt.made, attempt.found, attempt.rows) == (1, 3, run.plan.n_rows)
    assert attempt.residual == max(part.residual for part in explained.parts)
