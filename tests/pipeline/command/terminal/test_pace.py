"""Per cent and time left: of rows, near what comes of it, and nothing said where there is nothing to go by."""

import pytest

from leafledger.pipeline.cluster.worker_identity import Machine, Worker
from leafledger.pipeline.command.terminal.pace import Pace, write_seconds
from leafledger.pipeline.dataset.files.listing import Rejected, WorkItem
from leafledger.pipeline.progress import Work
from leafledger.pipeline.runs.records.part import Part

ROWS = 1000  # of a part


def made(number, seconds):
    """A part; of no seconds one that an earlier attempt made."""
    return Part(number, ROWS, 1, "", None, seconds, {}, Worker(Machine("", ""), 0))


def play(n_parts, ends, clock):
    """Parts that end at given times: what is said of each, as text."""
    pace = Pace(Work("explaining", "run", n_parts, n_parts * ROWS), lambda: clock[0])
    for number, (at, seconds) in enumerate(ends):
        clock[0] = at
        pace.add(made(number, seconds))
        yield str(pace)


def test_the_time_left_is_said_when_a_second_part_shows_it():
    """One thread, ten parts of ten seconds: per cent from the first, an estimate from the second."""
    said = list(play(10, [(10.0 * (number + 1), 10.0) for number in range(10)], [0.0]))
    assert said[0] == "10%"
    assert said[1:] == [f"{10 * n}%, about {write_seconds(100 - 10 * n)} left" for n in range(2, 10)] + ["100%"]


def test_threads_that_end_together_are_not_taken_for_one():
    """Eight threads, 80 parts of ten seconds, which ends after 100: their first parts come within a tenth of a second, and the first of them would
    have said 800. Once a turn is over, what is said is at most a third off; while its parts come in, not much more than twice."""
    ends = sorted((10.0 * (turn + 1) + 0.01 * thread, 10.0) for turn in range(10) for thread in range(8))
    clock, end = [0.0], ends[-1][0]
    pace = Pace(Work("explaining", "run", 80, 80 * ROWS), lambda: clock[0])
    seen = []
    for number, (at, seconds) in enumerate(ends):
        clock[0] = at
        pace.add(made(number, seconds))
        if pace.left is not None:
            seen.append((number, pace.left / (end - at) if at < end - 1 else 1.0))
    assert seen[0][0] in range(8, 17)  # from the second turn on
    assert all(0.66 < ratio < 2.2 for _, ratio in seen)
    assert all(0.66 < ratio < 1.34 for number, ratio in seen if number % 8 == 7)  # once a turn is over


def test_parts_that_were_done_before_say_nothing_of_the_speed():
    """900 of 1,000 are found within a second; of the others each takes a minute. What is left is hours less than the parts, and more than seconds."""
    ends = [(0.001 * number, 0.0) for number in range(900)] + [(1.0 + 60.0 * (number + 1), 60.0) for number in range(3)]
    said = list(play(1000, ends, [0.0]))
    assert said[899] == "90%"  # nothing silly, such as a second
    assert said[900] == "90%"
    assert said[901] == "90%, about 2 h left"
    assert said[902] == "90%, about 2 h left"


def test_nothing_is_said_in_the_first_seconds():
    said = list(play(100, [(0.1 * (number + 1), 0.1) for number in range(50)], [0.0]))
    assert [text for text in said[:29] if "left" in text] == []
    assert said[30] == "31%, about 7 s left"


def test_the_time_left_goes_on_between_parts():
    """It counts down, and is not said any more where a part takes longer than all was meant to."""
    clock = [0.0]
    pace = Pace(Work("explaining", "run", 4, 4 * ROWS), lambda: clock[0])
    for number in range(2):
        clock[0] += 10.0
        pace.add(made(number, 10.0))
    found = []
    for clock[0] in (20.0, 25.0, 39.0, 41.0):
        found.append(pace.left)
    assert found == [20.0, 15.0, 1.0, None]


def test_pieces_without_seconds_and_rejected_ones_count():
    """Those that are measured or counted have no speed of their own; a rejected file is no part, and its rows are done."""
    clock = [0.0]
    pace = Pace(Work("measuring", "run", 4, 4 * ROWS), lambda: clock[0])
    for number in range(2):
        clock[0] += 5.0
        pace.add(WorkItem(number, "a", "", (), 0, ROWS, 0, ()))
    assert (pace.n_done, str(pace)) == (2, "50%, about 10 s left")
    pace.add(Rejected(1, "b", (), 10, "damaged"))
    pace.add(Rejected(2, "c", (), ROWS, "damaged"))
    assert (pace.n_done, pace.n_rows, pace.percent) == (3, 3 * ROWS + 10, 75)


@pytest.mark.parametrize(("rows", "items", "percent"), [(3000, 3, 66), (0, 3, 66), (0, 0, 100)])
def test_per_cent_are_of_rows_or_else_of_pieces(rows, items, percent):
    """And 100 only at the end: 999 of 1,000 are 99."""
    pace = Pace(Work("explaining", "run", items, rows), lambda: 0.0)
    for number in range(2):
        pace.add(made(number, 1.0))
    assert pace.percent == percent


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.2, "1 s"), (7.4, "7 s"), (42.0, "40 s"), (89.0, "90 s"), (90.0, "2 min"), (3600.0, "60 min"), (7000.0, "2 h"), (200_000.0, "2 d")],
)
def test_durations_are_as_precise_as_estimates_are(seconds, said):
    assert write_seconds(seconds) == said
