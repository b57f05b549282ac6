"""What made predictions worse is said in a sentence."""

from leafledger.pipeline.drift.compare.worse import say_worse

SPLIT = {"output": "0", "reference_mean": 1.0, "mean": 2.0, "change": 1.0, "standard_error": None, "base": 1.5, "features": -0.5}


def shift(feature, change, error=None):
    """Of the mean attribution of a feature."""
    return {"kind": "phi", "output": "0", "feature": feature, "change": change, "standard_error": error}


def test_the_sentence_says_what_is_known():
    """That nothing moved, and nothing of means that are not known."""
    assert say_worse(SPLIT, [], True) == "the mean loss rose from 1 to 2, +1: +1.5 by labels harder to predict, -0.5 by all features"
    assert ": +1.5 by the base value, of labels, model and background, -0.5 by all features" in say_worse(SPLIT, [], False)
    assert say_worse({**SPLIT, "base": None, "features": None}, [], True) == "the mean loss rose from 1 to 2"
    assert say_worse({**SPLIT, "mean": 1.0, "change": 0.0}, [], True) == "the mean loss stayed at 1"
    assert say_worse({**SPLIT, "change": None, "mean": None}, [], True) is None


def test_the_largest_part_comes_first():
    """A feature is named where it moved the loss most in the direction of its change, and is not called most of it where others are larger."""
    shifts = [shift("a", -3.0), shift("b", 0.5, 0.25), shift("c", None), {**shift("d", 9.0), "kind": "value"}]
    said = say_worse({**SPLIT, "features": -2.5, "base": 3.5, "standard_error": 0.125}, shifts, True)
    assert said == (
        "the mean loss rose from 1 to 2, +1 (standard error 0.12): +3.5 by labels harder to predict, -3 by the other features, +0.5 (0.25) by b"
    )
    fell = {**SPLIT, "mean": 0.5, "change": -0.5, "features": -0.25, "base": -0.25}
    assert say_worse(fell, [shift("a", -0.25)], True).endswith(", -0.5: -0.25 by labels easier to predict, -0.25 by a")
