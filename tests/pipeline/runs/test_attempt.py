"""An attempt knows when it began, and how long its stages took, whether they ended well or not."""

import time
from datetime import UTC, datetime, timedelta

import pytest

from pipeline.runs.attempt import Attempt


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
