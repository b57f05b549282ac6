"""The number of the format in which a run's records are written, and the refusal of formats that this version does not read."""

from importlib.metadata import version
from typing import Any

from ...arguments.readers import SHOWN, shorten
from ...display.text import printable
from ...errors import OtherVersion

NUMBER = "format_version"  # field of a record with the number
FORMAT = 3  # in which this version writes; whatever is added to a record, or changes its meaning, makes another number
UNNUMBERED = {"0.1.": 1, "0.2.": 2}  # formats of versions that wrote no number, by what their version begins with
LAST_UNNUMBERED = max(UNNUMBERED.values())  # of records that name no version


def refuse_version(uri: str, made_by: str, why: str) -> OtherVersion:
    """Say that a record cannot be read since another version wrote it, and what to do.

    Parameters
    ----------
    uri : str
        Of the record.
    made_by : str
        The other version, or what is known of it, in words.
    why : str
        What cannot be read.
    """
    return OtherVersion(
        f"{uri}: made by leafledger {printable(made_by)}, this is {version('leafledger')}: {why}; read it with the version that made it, or make the "
        "run again, with --if-changed replace where its folder stays"
    )


def say_version(entry: Any) -> str | None:
    """Find the version that a record says it is of; None where it says none."""
    found = entry.get("version") if isinstance(entry, dict) else None
    return found[:SHOWN] if isinstance(found, str) else None


def read_number(entry: Any, uri: str) -> int:
    """Read the number of a record's format.

    Parameters
    ----------
    entry : Any
        The record as parsed from JSON.
    uri : str
        Of the record, for the message.

    Returns
    -------
    int
        Of a record without a number that of the version that it names, or of the last version that wrote none.

    Raises
    ------
    OtherVersion
        A later version wrote it, or one that was never released.
    ValueError
        What is there is no number.
    """
    if not isinstance(entry, dict):
        return LAST_UNNUMBERED
    said = say_version(entry)
    if NUMBER in entry:
        number = entry[NUMBER]
        if type(number) is not int or number <= LAST_UNNUMBERED:
            raise ValueError(f"{NUMBER} is {shorten(number)}, expected {FORMAT}")
        if number > FORMAT:
            raise refuse_version(uri, said or "of a later version", f"it is of format {number}, and formats up to {FORMAT} are known here")
        return number
    if said is None:
        return LAST_UNNUMBERED
    found = next((number for beginning, number in UNNUMBERED.items() if said.startswith(beginning)), None)
    if found is None:
        raise refuse_version(uri, said, "it has no number of its format, as while that version was in the making")
    return found
