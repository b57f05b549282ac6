"""What made predictions worse is said in a sentence."""

import dataclasses

import numpy as np

from leafledger.pipeline.drift.compare.split import Split
from leafledger.pipeline.drift.compare.worse import say_worse


def test_the_sentence_says_what_is_known():
    """Which feature most of it is, if any; that nothing moved; and nothing of means that are not known."""
    split = Split("0", 1.0, 2.0, change=1.0, standard_error=np.nan, base=1.5, features=-0.5, rounding=0.0, ndcg=1.0)
    assert say_worse(split, [], True) == "the mean loss rose from 1 to 2, +1: +1.5 is the mix of labels, -0.5 all features"
    assert say_worse(split, [], False).endswith("+1.5 is the base value, of labels, model and background, -0.5 all features")
    assert say_worse(dataclasses.replace(split, base=None, features=None), [], True) == "the mean loss rose from 1 to 2"
    assert say_worse(dataclasses.replace(split, mean=1.0, change=0.0), [], True) == "the mean loss stayed at 1"
    assert say_worse(dataclasses.replace(split, change=np.nan), [], True) is None
