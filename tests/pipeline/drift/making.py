"""What tests of drift share: distributions of arrays, as the pieces of a run make them."""

import numpy as np

from leafledger.kernels.distributions.column_distribution import SPREADS, count_column
from leafledger.kernels.distributions.histogram import NOTHING, finish_histogram, merge_histograms, start_histogram
from leafledger.kernels.reductions.reduction import merge_all
from leafledger.pipeline.drift.measure.measured_run import make_distribution


def distribution(values, n_pieces=3):
    """The distribution of values, counted in pieces."""
    states, counts = [], NOTHING
    for piece in np.array_split(np.asarray(values, np.float64), n_pieces):
        tally = start_histogram()
        states.append(count_column(piece, tally))
        counts = merge_histograms(counts, finish_histogram(tally))
    return make_distribution(merge_all(SPREADS, states, 1, 1), 0, counts)
