"""The Shown record: rows of a finished run as text, HTML or JSON."""

from dataclasses import dataclass, replace
from typing import Any

from .names import Names
from .row_data import STEPS, ShownRow, Wording
from .row_html import write_rows
from .row_json import row_document
from .row_text import write_text


@dataclass(frozen=True, slots=True)
class Shown:
    """Rows of a run; prints as text, and in a notebook as tables."""

    run: str  # URI of the run's folder
    manifest: str  # SHA-256 of its manifest
    method: str
    wording: Wording  # names of the numbers
    n_found: int  # rows found; more than ``rows`` under a limit
    rows: tuple[ShownRow, ...]

    def text(self, top: int = STEPS) -> str:
        """Write the rows for a terminal.

        Parameters
        ----------
        top : int
            How many features of a row are shown; where they add up, the others are added up.

        Returns
        -------
        str
            Lines, in which names and values do nothing but stand there.
        """
        return write_text(self.wording, self.rows, self.n_found, top)

    def called(self, names: Names) -> "Shown":
        """Return the same rows for a reader: features by their titles, and numbers with units.

        Parameters
        ----------
        names : Names
        """
        return replace(self, wording=names.show_wording(self.wording), rows=tuple(map(names.show_row, self.rows)))

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON-compatible objects without loss: numbers as stored, null for none."""
        own = {"run": self.run, "manifest": self.manifest, "method": self.method, "n_found": self.n_found}
        return own | {"rows": [row_document(self.wording, row) for row in self.rows]}

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        """Show the rows as tables."""
        return write_rows(self.wording, self.rows, self.n_found)
