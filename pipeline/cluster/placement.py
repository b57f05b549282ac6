"""Placement."""

from ipaddress import ip_address

from ..arguments.endpoints import split_address
from ..errors import UsageError

SERIAL = "serial"
ENCRYPTED = ("tls", "wss")  # ways to a scheduler


def _is_this_host(name: str) -> bool:
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


def check_scheduler(address: str | None, plain_tcp: bool, workers: int | None = None) -> None:
    """Refuse a scheduler on another host without TLS: whoever reaches it runs code on its workers, and reads what they are told.

    One with so many workers is refused too, since these are a local cluster's.

    Parameters
    ----------
    address : str or None
        Of the scheduler, or SERIAL.
    plain_tcp : bool
        The network is the user's own.
    workers : int or None
        Processes that were asked for.

    Raises
    ------
    UsageError
        It is reached without TLS, or the address is none; or workers were asked for beside it.
    """
    if address is None:
        return
    if workers is not None:
        raise UsageError(f"workers is {workers}, which is for a local cluster, but scheduler is {address!r:.80}; leave out one or the other")
    if address == SERIAL:
        return
    whole = address if "://" in address else f"tcp://{address}"  # as Dask takes it
    where = split_address(whole, f"scheduler is {address!r:.80}, expected an address as tls://host:8786")
    if where.scheme not in ENCRYPTED and not plain_tcp and not _is_this_host(where.hostname or ""):
        raise UsageError(f"{address}: is another host without TLS; use tls://…, or plain_tcp if the network is your own")
