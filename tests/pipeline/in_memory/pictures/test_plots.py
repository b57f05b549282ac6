"""What can be drawn of attributions, as editors complete it."""

import inspect

from leafledger import Picture, Plots, attribute
from tests.pipeline.plots.models import FRAME, MODEL


def test_every_plot_returns_a_picture():
    """Of the kinds that shap's users know, and no others."""
    asked = {"scatter": ("age",)}
    kinds = [name for name, _ in inspect.getmembers(Plots, inspect.isfunction) if not name.startswith("_")]
    assert kinds == ["bar", "beeswarm", "curves", "heatmap", "interactions", "scatter", "waterfall"]
    assert all(f".{kind}" in repr(attribute(MODEL, FRAME[:5]).plot) for kind in kinds)
    for kind in kinds:
        found = attribute(MODEL, FRAME[:60], "curves") if kind == "curves" else attribute(MODEL, FRAME[:60], interactions="all")
        assert isinstance(getattr(found.plot, kind)(*asked.get(kind, ())), Picture)
