"""Reasons of rows: those of a list sorted by hand, in the words of the first band that fits, with the distance to what was left out."""

from decimal import Decimal

import lightgbm
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leafledger import attribute, check_run, explain
from leafledger.kernels.method.jackknife import N_GROUPS
from leafledger.pipeline.models.model import Feature
from leafledger.pipeline.runs.columns.reason_columns import make_columns, select_reasons
from leafledger.pipeline.runs.columns.reasons import Band, Reasons, Worded
from tests.pipeline.conftest import FEATURES
from tests.pipeline.running import attributions

TEXT = "{feature} is {value}"


class _Prepared:
    """What is read of Prepared."""

    def __init__(self, players):
        self.players = np.array(players, np.int32)


def reasons_of(direction="raises", most=4, least=0.0, never=(), default=TEXT, worded=()):
    """Reasons as if read from a file."""
    return Reasons("", direction, most, least, tuple(never), Band(None, default), tuple(Worded(name, bands) for name, bands in worded))


def naive_choice(phi, named, direction, most, least):
    """What is told of one row, by sorting a list: players, shares, distance, and whether something was withheld."""
    sign = 1 if direction == "raises" else -1
    there = sorted(((-sign * value, player) for player, value in enumerate(phi) if sign * value > 0))
    total = sum(-size for size, _ in there)
    enough = [(-size, player) for size, player in there if -size / total >= least]
    told = [(size, player) for size, player in enough if named[player]][:most]
    left = [-size for size, player in there if named[player]][len(told) :]
    distance = told[-1][0] - (left[0] if left else 0.0) if told else None
    withheld = any(not named[player] for _, player in enough[:most])
    return [player for _, player in told], [size / total for size, _ in told], distance, withheld


@settings(max_examples=200, deadline=None)
@given(
    phi=st.lists(st.sampled_from([0.0, 1.0, -1.0, 2.0, 0.5, -3.0]), min_size=0, max_size=7),
    hidden=st.sets(st.integers(0, 6)),
    direction=st.sampled_from(["raises", "lowers"]),
    most=st.integers(1, 9),
    least=st.sampled_from([0.0, 0.1, 0.3, 1.0]),
)
@pytest.mark.slow
def test_a_row_is_told_what_a_sorted_list_says(phi, hidden, direction, most, least):
    """Order, ties by the order of features, signs, shares, exclusion and the distance, of few values so that many are equal."""
    named = np.array([player not in hidden for player in range(len(phi))], bool)
    players, shares, distance, withheld = naive_choice(phi, named, direction, most, least)
    found = select_reasons(np.array(phi).reshape(-1, 1), np.zeros((0, len(phi), 1)), named, reasons_of(direction, most, least), np.float64)
    n_told = int(found.n_told[0])
    assert found.position[0, :n_told].tolist() == players
    assert found.share[0, :n_told].tolist() == pytest.approx(shares)
    assert (None if np.isnan(found.distance[0]) else found.distance[0]) == distance
    assert bool(found.withheld[0]) == withheld


def test_attributions_that_are_equal_as_stored_come_in_the_order_of_features():
    phi = np.array([[1.0], [1.0 + 1e-12]])
    for dtype, first in ((np.float32, 0), (np.float64, 1)):
        assert select_reasons(phi, np.zeros((0, 2, 1)), np.ones(2, bool), reasons_of(), dtype).position[0, 0] == first


def test_the_error_is_that_of_the_difference():
    """A jackknife by hand over the lots; where all lots move two attributions alike, their distance is sure."""
    rng = np.random.default_rng(4)
    phi, without = np.array([[3.0], [2.0], [1.0], [-5.0]]), rng.normal(size=(N_GROUPS, 4, 1))
    found = select_reasons(phi, without, np.ones(4, bool), reasons_of(most=2), np.float64)
    apart = without[:, 1, 0] - without[:, 2, 0]
    assert found.distance[0] == 1.0
    assert found.error[0] == pytest.approx(np.sqrt((N_GROUPS - 1) / N_GROUPS * ((apart - 1.0) ** 2).sum()))
    alike = phi + rng.normal(size=(N_GROUPS, 1, 1))
    assert select_reasons(phi, alike, np.ones(4, bool), reasons_of(most=2), np.float64).error[0] == pytest.approx(0, abs=1e-12)
    alone = select_reasons(phi, without, np.ones(4, bool), reasons_of(most=3), np.float64)  # nothing else raises: the distance is to nothing
    assert alone.error[0] == pytest.approx(np.sqrt((N_GROUPS - 1) / N_GROUPS * ((without[:, 2, 0] - 1.0) ** 2).sum()))


NUMBER, CITY = Feature("x"), Feature("x", True, ("ny", "rome"))


def words(feature, column, *bands):
    """Of a feature that is the only reason of every row: code, text and value."""
    n = len(column)
    reasons = reasons_of(worded=[("x", bands)])
    found = make_columns(np.ones((1, n)), np.zeros((0, 1, n)), reasons, _Prepared([0]), ["x"], {"x": feature}, {"x": column}, np.float64)
    return [(row[0]["code"], row[0]["text"], row[0]["value"]) for row in found[0].to_pylist()]


def test_bands_end_where_they_say():
    """At the edges and one float beside them; infinite values are in the outer bands; missing ones in theirs."""
    bands = (
        Band("a", "low", below=0.0),
        Band("b", "few", at_least=0.0, at_most=10.0),
        Band("c", "many", above=10.0),
        Band("d", "unknown", missing=True),
    )
    edges = [-np.inf, np.nextafter(0, -1), 0.0, -0.0, 10.0, np.nextafter(10, 11), np.inf, None, np.nan]
    assert [code for code, *_ in words(NUMBER, pa.array(edges, from_pandas=False), *bands)] == list("aabbbccdd")


def test_values_of_a_list_and_others():
    assert [code for code, *_ in words(NUMBER, pa.array([1, 2, 3, None]), Band("a", "t", one_of=(1.0, 3.0)), Band("b", "t"))] == list("abab")
    texts = pa.array(["rome", "ny", "oslo", None]).dictionary_encode()
    bands = Band("a", "In {value}", one_of=("rome",)), Band("m", "no city", missing=True), Band("b", "Not in Rome but in {value:>5}")
    assert words(CITY, texts, *bands) == [
        ("a", "In rome", "rome"),
        ("b", "Not in Rome but in    ny", "ny"),
        ("b", "Not in Rome but in  oslo", "oslo"),
        ("m", "no city", None),
    ]


def test_numbers_are_written_as_the_text_says():
    """Without a form as people write them; a missing one as a word."""
    column = pa.array([1234.5678, 0.1, None], pa.float32())
    assert [text for _, text, _ in words(NUMBER, column, Band(None, "{value:,.1f} of {feature}, {{kept}}"))] == [
        "1,234.6 of x, {kept}",
        "0.1 of x, {kept}",
        "missing of x, {kept}",
    ]
    assert [text for _, text, _ in words(NUMBER, pa.array([30, 0, None]), Band(None, "{value}"))] == ["30", "0", "missing"]
    assert [value for *_, value in words(NUMBER, column, Band(None, "t"))] == ["1234.5677", "0.1", None]


def test_a_number_that_stands_for_missing_is_missing():
    assert words(Feature("x", missing=-999.0), pa.array([-999, 3]), Band("m", "none", missing=True), Band("b", "{value}")) == [
        ("m", "none", None),
        ("b", "3", "3"),
    ]
    held = pa.array([-99.9, 3], pa.float32())  # as the column holds it
    assert words(Feature("x", missing=-99.9), held, Band("m", "none", missing=True), Band("b", "{value}"))[0] == ("m", "none", None)


def test_bounds_are_as_narrow_as_the_column():
    """0.1 of a float32 column is the 0.1 that people write: at most 0.1, in a list of 0.1, and not above it."""
    column = pa.array([0.1, 0.2, 0.7], pa.float32())
    bands = Band("low", "{value} <= 0.1", at_most=0.1), Band("high", "{value} > 0.1", above=0.1)
    assert [text for _, text, _ in words(NUMBER, column, *bands)] == ["0.1 <= 0.1", "0.2 > 0.1", "0.7 > 0.1"]
    assert [code for code, *_ in words(NUMBER, column, Band("a", "t", one_of=(0.1, 0.7)), Band("b", "t"))] == list("aba")
    assert [code for code, *_ in words(NUMBER, column, Band("a", "t", below=0.7), Band("b", "t", at_least=0.7))] == list("aab")
    beyond = Band("a", "t", above=1e300), Band("b", "t", at_most=1e300)
    assert [code for code, *_ in words(NUMBER, column, *beyond)] == list("bbb")
    exact = pa.array([Decimal("0.35"), Decimal("0.57"), None], pa.decimal128(10, 2))
    assert [code for code, *_ in words(NUMBER, exact, Band("a", "t", at_most=0.35), Band("b", "t", one_of=(0.57,)), Band("c", "t"))] == list("abc")


def test_codes_and_booleans_are_compared_as_the_model_does():
    """Codes of categories are cut to integers, those below 0 are no category; booleans that are looked up are written as people write them."""
    codes = pa.array([1.9, 1.0, -1.0, 2.0, None, -7.5])
    bands = Band("a", "t", one_of=(1.0,)), Band("n", "t", one_of=(-1.0,)), Band("m", "t", missing=True), Band("b", "t")
    assert [code for code, *_ in words(Feature("x", True), codes, *bands)] == list("aanbmn")
    looked_up = Feature("x", True, None, hashed=True, booleans=("0", "1"))
    for spellings, expected in ((("true", "True", "1"), ["a", "b", "b"]), (("false", "False", "0"), ["b", "a", "b"])):
        for spelled in spellings:
            found = words(looked_up, pa.array([True, False, None]), Band("a", "{value}", one_of=(spelled,)), Band("b", "{value}"))
            assert [(code, text) for code, text, _ in found] == list(zip(expected, ["true", "false", "missing"], strict=True))


def test_views_of_texts_are_texts():
    viewed = pa.array(["rome", "ny", None], pa.string_view())
    assert [text for _, text, _ in words(CITY, viewed, Band(None, "{value}"))] == ["rome", "ny", "missing"]


def test_no_rows_and_no_attributions_make_empty_lists():
    for shape, players in (((2, 0), [0, 1]), ((0, 3), [])):
        n = shape[1]
        found = make_columns(np.ones(shape), np.zeros((0, *shape)), reasons_of(), _Prepared(players), ["x", "y"], {}, {}, np.float32)
        assert found[0].to_pylist() == [[]] * n
        assert found[1].to_pylist() == [None] * n
        assert found[2].to_pylist() == [False] * n


FILE = {
    "direction": "raises",
    "most": 2,
    "least": 0.1,
    "never": ["month"],
    "reason": [
        {"feature": "delay", "code": "D1", "text": "{value:.0f} minutes late", "above": 15},
        {"feature": "delay", "code": "D2", "text": "hardly late", "at_most": 15},
        {"feature": "delay", "code": "D3", "text": "delay unknown", "missing": True},
        {"feature": "carrier", "code": "C", "text": "flown by {value}"},
        {"feature": "distance", "text": "{value:.0f} miles"},
    ],
}


def say(name, value):
    """The words of FILE by hand."""
    if name == "delay":
        return ("D3", "delay unknown") if pd.isna(value) else ("D1", f"{value:.0f} minutes late") if value > 15 else ("D2", "hardly late")
    return ("C", f"flown by {'missing' if pd.isna(value) else value}") if name == "carrier" else (None, f"{value:.0f} miles")


@pytest.fixture(scope="module")
def run(example, tmp_path_factory):
    """A run with reasons."""
    out = tmp_path_factory.mktemp("reasons") / "run"
    return out, explain(example.model, example.data, out, ids="flight", reasons=FILE, scheduler="serial")


def test_a_run_s_reasons_are_those_of_its_wide_columns(run, example):
    """Row by row from the attributions as they are stored and the rows as they were; ids say which."""
    table = attributions(run[0])
    phi = np.column_stack([table[f"phi_{name}"].to_numpy().astype(float) for name in FEATURES])
    named = [name != "month" for name in FEATURES]
    rows = example.frame.set_index("flight").loc[table["flight"].to_pylist()]
    for i, entry in enumerate(table.select(["reasons", "reasons_distance", "reasons_withheld"]).to_pylist()):
        players, shares, distance, withheld = naive_choice(phi[i].tolist(), named, "raises", 2, 0.1)
        found = entry["reasons"]
        assert [(each["rank"], each["feature"], each["phi"]) for each in found] == [(k + 1, FEATURES[p], phi[i, p]) for k, p in enumerate(players)]
        assert [each["share"] for each in found] == pytest.approx(shares, rel=1e-6)
        assert [(each["code"], each["text"]) for each in found] == [say(FEATURES[p], rows.iloc[i][FEATURES[p]]) for p in players]
        assert entry["reasons_withheld"] == withheld
        assert entry["reasons_distance"] == (None if distance is None else np.float32(distance))


def test_only_what_may_be_missing_can_be_null(run):
    """Every row has a list and says whether something was withheld; a distance has only who is told something."""
    schema = pq.read_schema(next((run[0] / "attributions").iterdir()))
    assert {name: schema.field(name).nullable for name in schema.names if name.startswith("reasons")} == {
        "reasons": False,
        "reasons_distance": True,
        "reasons_withheld": False,
    }


def test_a_run_with_reasons_is_sound(run):
    """Every row explained again has the same reasons; other words of one row are found."""
    out, manifest = run
    assert check_run(out, all_rows=True).sound
    assert len(manifest.reasons) == 64
    assert attributions(out).drop_columns(["reasons", "reasons_distance", "reasons_withheld"]).column_names[-1] == "phi_month"


def test_summaries_and_attributions_are_those_without_reasons(run, serial):
    wide = attributions(run[0]).drop_columns(["reasons", "reasons_distance", "reasons_withheld"])
    assert wide.equals(attributions(serial[0]).drop_columns(["name"]))
    for name in ("importance", "inputs"):
        assert (run[0] / "summary" / f"{name}.json").read_bytes() == (serial[0] / "summary" / f"{name}.json").read_bytes()


def test_reasons_of_groups_and_of_several_outputs_and_in_another_space(example, tmp_path):
    """A group has no value; every output has its own reasons."""
    from tests.pipeline.conftest import train

    booster = train(example.frame, objective="multiclass", num_class=3)
    booster.save_model(tmp_path / "three.txt")
    file = {
        "direction": "lowers",
        "most": 1,
        "reason": [{"feature": "flown", "text": "how it was flown"}],
        "default": {"code": "other", "text": TEXT},
    }
    partition = {"flown": ["distance", "carrier"]}
    explain(
        tmp_path / "three.txt", example.data, tmp_path / "run", reasons=file, partition=partition, space="probability", columns="top", top=1,
        sign="lowers", scheduler="serial",
    )  # fmt: skip
    table = attributions(tmp_path / "run")
    assert table.column_names[-3:] == ["reasons_2", "reasons_distance_2", "reasons_withheld_2"]
    for k in range(3):
        for told, top in zip(table[f"reasons_{k}"].to_pylist(), table[f"top_{k}"].to_pylist(), strict=True):
            assert [(each["feature"], each["phi"], each["value"]) for each in told] == [(each["feature"], each["phi"], each["value"]) for each in top]
            for each in told:
                expected = "how it was flown" if each["feature"] == "flown" else f"{each['feature']} is {each['value'] or 'missing'}"
                assert (each["code"], each["text"]) == (None if each["feature"] == "flown" else "other", expected)


def test_errors_say_whether_the_distance_is_clear(example, tmp_path):
    """The jackknife of the run itself, by the columns of errors where one reason stands alone; else within their sum."""
    background = example.frame.sample(200, random_state=1)
    pq.write_table(pa.Table.from_pandas(background[FEATURES], preserve_index=False), tmp_path / "background.parquet")
    file = {"direction": "raises", "most": 1, "default": {"text": TEXT}}
    explain(
        example.model, example.data, tmp_path / "run", reasons=file, background=tmp_path / "background.parquet", background_errors=True,
        precision="float64", scheduler="serial",
    )  # fmt: skip
    table = attributions(tmp_path / "run")
    distance, error, clear = (table[f"reasons_{name}"].to_pylist() for name in ("distance", "error", "clear"))
    phi = np.column_stack([table[f"phi_{name}"].to_numpy() for name in FEATURES])
    errors = np.column_stack([table[f"error_{name}"].to_numpy() for name in FEATURES])
    alone = 0
    for i, row in enumerate(phi):
        raising = np.flatnonzero(row > 0)
        assert (distance[i] is None) == (raising.size == 0) == (clear[i] is None)
        if raising.size == 0:
            continue
        assert clear[i] == (distance[i] > 2 * error[i])
        first, *others = raising[np.argsort(-row[raising], kind="stable")]
        if not others:
            alone += 1
            assert error[i] == pytest.approx(errors[i, first], rel=1e-9, abs=1e-15)
        else:
            assert error[i] <= errors[i, first] + errors[i, others[0]] + 1e-12
    assert alone > 5


@pytest.mark.slow
def test_what_is_clear_is_hardly_ever_otherwise_in_the_population(tmp_path):
    """Backgrounds of 300 rows are drawn from a population whose own values are known: a choice is wrong where its order is another one there."""
    rng = np.random.default_rng(3)
    names = list("abcdefgh")
    population = pd.DataFrame(rng.normal(size=(20_000, 8)), columns=names)
    population["b"] += population["a"]
    label = population["a"] * population["b"] + np.sin(population["c"]) + population[list("defgh")].sum(axis=1)
    model = lightgbm.LGBMRegressor(n_estimators=30, num_leaves=8, verbose=-1, n_jobs=1).fit(population, label)
    model.booster_.save_model(tmp_path / "model.txt")
    population[:300].to_parquet(tmp_path / "rows.parquet")
    truth = attribute(model, population[:300], background=population).phi[:, 0]
    wrong = {True: [], False: []}
    for number in range(8):
        background = tmp_path / f"{number}.parquet"
        population.iloc[rng.integers(0, len(population), 300)].to_parquet(background)
        explain(
            tmp_path / "model.txt", tmp_path / "rows.parquet", tmp_path / f"run{number}", background=background, background_errors=True,
            precision="float64", scheduler="serial", reasons={"direction": "raises", "most": 2, "default": {"text": TEXT}},
        )  # fmt: skip
        table = attributions(tmp_path / f"run{number}")
        phi = np.column_stack([table[f"phi_{name}"].to_numpy() for name in names])
        for i, clear in enumerate(table["reasons_clear"].to_pylist()):
            order = [player for player in np.argsort(-phi[i], kind="stable") if phi[i, player] > 0]
            if order:
                last, *left = order[min(2, len(order)) - 1 :]
                wrong[clear].append(truth[i, last] <= (truth[i, left[0]] if left else 0))
    assert np.mean(wrong[True]) < 0.01
    assert np.mean(wrong[False]) > 0.05
    assert len(wrong[True]) > len(wrong[False]) > 100
