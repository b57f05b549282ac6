"""The command ``certificates``: TLS certificates for a Dask cluster."""

from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from ...extras import needing
from ..terminal.documents import write_document
from ..terminal.flags import INPUT, Json, Quiet, Whole
from ..terminal.terminal import open_console, say


def certificates(
    folder: Annotated[str, Parameter(group=INPUT)],
    *,
    hosts: Annotated[tuple[str, ...], Parameter(name="--host", group=INPUT, negative=(), consume_multiple=True)] = ("localhost", "127.0.0.1"),
    days: Annotated[Whole, Parameter(group=INPUT)] = 365,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Make certificates by which a Dask scheduler, its workers and its clients know each other, and encrypt what they say.

    Parameters
    ----------
    folder
        Where certificates and keys are written, with dask.yaml, which names them to Dask. None of them may be there.
    hosts
        Names and addresses that they are made out to. Dask does not look at them.
    days
        Until they expire.
    quiet
        Show nothing but errors.
    json
        Write one JSON document instead.

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where.
    """
    with needing("leafledger certificates", "cryptography"):
        from ...cluster.certificates import make_certificates

    made = make_certificates(folder, hosts, days)
    if json:
        write_document(asdict(made))
        return
    console = open_console(quiet)
    say(console, f"{made.folder}: {', '.join(made.files)}")
    say(console, f"valid until {made.expires:%Y-%m-%d %H:%M} UTC, for {', '.join(made.hosts)}")
