"""What features are called in the data, where a library writes their names otherwise into its files."""

from collections.abc import Iterable
from dataclasses import replace

from ..errors import SchemaMismatch
from ..models.model import Model


def spell(model: Model, columns: Iterable[str], where: str) -> Model:
    """Name a model's features as the columns are named: LightGBM writes an underscore for every space.

    Parameters
    ----------
    model : Model
    columns : iterable of str
        Names of all columns of the data.
    where : str
        What the columns are of, for the message.

    Returns
    -------
    Model
        With the features renamed that are there with spaces, and as it is where there are none.

    Raises
    ------
    SchemaMismatch
        Two columns may be a feature's.
    """
    written: dict[str, list[str]] = {}  # as LightGBM writes them
    for name in sorted({*columns}):
        written.setdefault(name.replace(" ", "_"), []).append(name)
    features = []
    for feature in model.features:
        found = written.get(feature.name, []) if feature.underscored else []
        if len(found) > 1:
            raise SchemaMismatch(
                f"{where}: columns {found[0]!r} and {found[1]!r} may both be the model's {feature.name!r}, expected one of them: LightGBM writes "
                "underscores for spaces"
            )
        features.append(replace(feature, name=found[0]) if found else feature)
    return replace(model, features=tuple(features))
