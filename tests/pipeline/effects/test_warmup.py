"""Compiling ahead: effects of small models call what effects of others call."""

from leafledger.pipeline.command.commands import warming
from leafledger.pipeline.effects import warmup


def test_models_of_one_output_and_of_two_are_called(monkeypatch):
    """With a pair and a category, against rows and by covers."""
    found = []
    for name in ("feature_effects", "partial_dependence"):
        real = getattr(warmup, name)
        monkeypatch.setattr(warmup, name, lambda *given, real=real, **more: found.append(real(*given, **more)))
    warmup.warm_effects()
    assert [type(each).__name__ for each in found] == ["FeatureEffects", "FeatureEffects", "PartialDependence"] * 2
    assert [len(each.outputs) for each in found[2::3]] == [1, 2]
    assert found[0].partial_dependence.names == ("f0", "f1", "c", ("f0", "f1"))
    assert not found[0].partial_dependence.notes


def test_the_command_warms_effects_unless_methods_are_asked_for(monkeypatch, capsys):
    """As the last piece."""
    done = []
    monkeypatch.setattr(warmup, "warm_effects", lambda: done.append("effects"))
    monkeypatch.setattr("leafledger.pipeline.methods.warmup.list_pieces", lambda names: [("one", lambda: done.append("one"))])
    warming.warm(quiet=True)
    warming.warm(methods="shapley", quiet=True)
    assert done == ["one", "effects", "one"]
