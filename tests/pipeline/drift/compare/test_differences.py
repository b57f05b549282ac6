"""What differs between runs is said, and what makes them two things is refused, in one line each."""

import pytest

from leafledger import explain
from leafledger.pipeline.drift.compare.differences import list_differences, refuse_unlike
from leafledger.pipeline.drift.measure.measured_run import measure_run
from leafledger.pipeline.errors import UnlikeRuns
from tests.pipeline.conftest import train, write_data


@pytest.fixture(scope="module")
def make(example, tmp_path_factory):
    """A measured run of the example with these options."""
    folder = tmp_path_factory.mktemp("differences")

    def run(name, model=None, data=None, **options):
        explain(model or example.model, data or example.data, folder / name, scheduler="serial", **options)
        return measure_run(folder / name)

    return run


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"method": "banzhaf"}, "method is banzhaf, .* has shapley; expected"),
        ({"outputs": ["late"]}, "outputs is late"),
        ({"background": "DATA"}, "background is rows"),
    ],
)
def test_runs_of_different_things_are_refused(make, example, options, said, request):
    """Naming what differs and both runs."""
    if options.get("background") == "DATA":
        options = {"background": f"{example.data}/month=1"}
    other = make(f"other-{abs(hash(str(options)))}", **options)
    with pytest.raises(UnlikeRuns, match=said):
        refuse_unlike(other, make("reference"))


@pytest.mark.parametrize(("options", "said"), [({"method": "curves"}, "has ranks"), ({"method": "r2", "label": "flight"}, "shares out an error")])
def test_what_is_no_attribution_is_refused(make, options, said):
    """Ranks, and shares of an error."""
    other = make(options["method"], **options)
    with pytest.raises(UnlikeRuns, match=said):
        refuse_unlike(other, other)


@pytest.mark.slow
def test_differences_are_said(make, example, tmp_path):
    """Another model, with another feature and other categories, fewer rows, other trees, no columns."""
    reference = make("a")
    assert list_differences(reference, make("again")) == ()
    frame = example.frame.assign(carrier=example.frame["carrier"].replace("DL", "XX")).iloc[:2000]
    train(frame).save_model(tmp_path / "model.txt")
    data = write_data(frame, tmp_path / "data")
    found = "\n".join(list_differences(make("b", str(tmp_path / "model.txt"), data, trees=3, precision="float64", values=True), reference))
    for said in (
        "the model is another one: SHA-256",
        "features whose categories in the model changed: carrier",
        "iterations of the model were all, they are 0:3",
        "precision was float32, it is float64",
        "2,000 rows, 33% fewer than before (3,000)",
        "has no values of features, which are not compared",
    ):
        assert said in found
    text = (tmp_path / "model.txt").read_text().replace("distance", "far\x1b[31m")
    (tmp_path / "other.txt").write_text(text)
    renamed = write_data(frame.rename(columns={"distance": "far\x1b[31m"}), tmp_path / "renamed")
    found = "\n".join(list_differences(make("c", str(tmp_path / "other.txt"), renamed), reference))
    assert "features that are new: far\\x1b[31m" in found
    assert "features that are gone: distance" in found
    lists, summaries = make("d", top=1, columns="top"), make("e", global_only=True)
    (said,) = list_differences(make("f", missing=4.0), reference)
    assert said.startswith("features of which another number stands for a missing value: distance")
    assert "has no columns of phi, only the largest" in list_differences(lists, reference)[0]
    assert "has summaries and no rows" in list_differences(summaries, reference)[0]


def test_rejected_work_is_said(make, example, tmp_path):
    """How much of the data could not be read, and when."""
    data = tmp_path / "data"
    write_data(example.frame, data)
    damaged = next(data.rglob("*.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:100])
    partly, whole = make("partly", data=str(data)), make("whole")
    assert any("1 piece of the data could not be read now" in line for line in list_differences(partly, whole))
    assert any("1 piece of the data could not be read before" in line for line in list_differences(whole, partly))
