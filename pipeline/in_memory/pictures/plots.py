"""The Plots of attributions: what can be drawn of them, which the figures of a report draw."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ...arguments.readers import read_number, refuse
from .picture import Picture

PICTURES = "leafledger.pipeline.plots.pictures"  # stands above reports, and is found by its name: reports stand above attributions


@dataclass(frozen=True, slots=True, repr=False)
class Plots:
    """Pictures of attributions, as ``found.plot.bar()``.

    Of several outputs the first three are drawn, one below the other, and of two classes that mirror each other the second, unless one is asked for
    by its name or position.
    """

    found: Any

    def __repr__(self) -> str:
        kinds = ", ".join(f".{name}" for name in vars(Plots) if not name.startswith("_") and callable(getattr(Plots, name)))
        return f"Plots of {self.found}: {kinds}; as found.plot.bar()"

    def bar(self, *, output: str | int | None = None, top: int = 20) -> Picture:
        """Draw how much each feature moves predictions, with standard errors; of losses, which made them larger; of rankings, which come first.

        Parameters
        ----------
        output : str or int, optional
            Only this one.
        top : int
            How many features, at least 1.

        Returns
        -------
        Picture

        Raises
        ------
        UsageError
            There is no such output.
        """
        return self._draw("bar", output, {"top": read_number("top", top, 1)})

    def beeswarm(self, *, output: str | int | None = None, top: int = 20) -> Picture:
        """Draw the distribution of each feature's attributions, coloured by its values.

        Parameters
        ----------
        output : str or int, optional
            Only this one.
        top : int
            How many features, at least 1.

        Returns
        -------
        Picture

        Raises
        ------
        UsageError
            There is no such output, the method ranks instead, or all attributions are 0.
        """
        return self._draw("beeswarm", output, {"top": read_number("top", top, 1)})

    def curves(self, *, output: str | int | None = None) -> Picture:
        """Draw what a ranking is worth: method "curves", how predictions go as features come and go; method "ranker", its objective step by step.

        Parameters
        ----------
        output : str or int, optional
            Only this one.

        Returns
        -------
        Picture

        Raises
        ------
        UsageError
            There is no such output, or the method has no steps.
        """
        return self._draw("curves", output, {})

    def scatter(self, feature: str, color: str | None = None, *, output: str | int | None = None) -> Picture:
        """Draw a feature's attributions against its values: a field for numbers, a box for each category.

        Parameters
        ----------
        feature : str
        color : str, optional
            Another feature whose values colour the field: from low to high, or a line for each of its largest categories.
        output : str or int, optional
            Only this one.

        Returns
        -------
        Picture

        Raises
        ------
        UsageError
            There is no such feature or output, it has no values or one alone, or colours were asked for beside categories.
        """
        for name, given in (("feature", feature), *((("color", color),) if color is not None else ())):
            if not isinstance(given, str):
                raise refuse(name, given, "the name of a feature")
        return self._draw("scatter", output, {"feature": feature, "color": color})

    def waterfall(self, row: int | str = 0, *, output: str | int | None = None, top: int = 10) -> Picture:
        """Draw how one row gets from the base value to what the model says.

        Parameters
        ----------
        row : int or label
            Its position, or its label where that is no number.
        output : str or int, optional
            By default the only one, or the class that is predicted for the row.
        top : int
            How many features, at least 1; the others are added up.

        Returns
        -------
        Picture

        Raises
        ------
        UsageError
            As by ``found.waterfall``.
        """
        picture: Picture = import_module(PICTURES).draw_waterfall_of(self.found, row, output, top)
        return picture

    def heatmap(self, *, output: str | int | None = None, top: int = 20) -> Picture:
        """Draw attributions as colours: a line for each feature, a column for each row or some, from the lowest prediction to the highest.

        Parameters
        ----------
        output : str or int, optional
            Only this one.
        top : int
            How many features, at least 1.

        Returns
        -------
        Picture

        Raises
        ------
        UsageError
            There is no such output, the method ranks instead, or all attributions are 0.
        """
        return self._draw("heatmap", output, {"top": read_number("top", top, 1)})

    def interactions(self, *, output: str | int | None = None) -> Picture:
        """Draw which features act together: pairs as a matrix, sets of any size as bars above their members.

        Parameters
        ----------
        output : str or int, optional
            Only this one.

        Returns
        -------
        Picture

        Raises
        ------
        UsageError
            Interactions were not asked for, nothing interacts, or there is no such output.
        """
        return self._draw("interactions", output, {})

    def _draw(self, kind: str, output: str | int | None, asked: Mapping[str, Any]) -> Picture:
        picture: Picture = import_module(PICTURES).draw_outputs(self.found, kind, output, asked)
        return picture
