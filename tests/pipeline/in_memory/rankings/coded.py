"""Rows as the definitions take them."""

import numpy as np

from tests.pipeline.conftest import FEATURES


def coded(model, frame):
    """Categories by their codes."""
    categories = list(model.features[FEATURES.index("carrier")].categories)
    return frame.assign(carrier=[categories.index(name) if isinstance(name, str) else np.nan for name in frame["carrier"]]).to_numpy(float)
