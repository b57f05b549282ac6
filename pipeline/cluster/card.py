"""The device that computes attributions: this process's cores, or its graphics card."""

from dataclasses import replace
from importlib import import_module
from typing import Any

from leafledger.kernels.cuda.card import find_obstacle, has_card, on_card
from leafledger.kernels.errors import NoRoom
from leafledger.kernels.method.method import Method
from leafledger.kernels.slices.buffers import Buffers, Prepared

from ..arguments.choices import AUTO, CPU, CUDA, Device
from ..errors import UsageError
from ..extras import needing

RAISING = ("numba", "numba_cuda", "cuda")  # packages whose errors are those of a card
RESOURCES = {"GPU": 1}  # what a task takes of a Dask worker's


def _has_card(asked: Device) -> bool:
    """Return whether this machine has a card; refuse its absence where it was asked for."""
    try:
        with needing(f"device {CUDA!r}", "numba_cuda"):
            import_module("numba_cuda")  # which Numba's cuda is then
            found = has_card()
        if not found:
            raise UsageError(f"device is {CUDA!r}, but there is no card here that CUDA can use")
    except UsageError:
        if asked == CUDA:
            raise
        return False
    return True


def choose_device(asked: Device, here: bool, against_background: bool) -> Device:
    """Choose where attributions are computed, before there are tables.

    Parameters
    ----------
    asked : {"cpu", "cuda", "auto"}
        "auto" is a card where there is one and the method runs there, but a processor against a background: a card is not known to be faster.
    here : bool
        This machine does the work; otherwise the workers of a cluster, of which nothing is known yet.
    against_background : bool
        Absent features are averaged over a background.

    Returns
    -------
    str
        "cpu" or "cuda".

    Raises
    ------
    UsageError
        A card was asked for, but there is none, or what it needs is not installed.
    """
    if asked == CPU or (asked == AUTO and (against_background or not here)):
        return CPU
    return CUDA if not here or _has_card(asked) else CPU


def fit_device(asked: Device, chosen: Device, method: Method, prepared: Prepared | None) -> Device:
    """Choose where attributions are computed, given the method's tables; the processor where they are not for a card, or refuse.

    Parameters
    ----------
    asked : {"cpu", "cuda", "auto"}
    chosen : {"cpu", "cuda"}
        By `choose_device`.
    prepared : Prepared or None
        None where a background is not counted yet.

    Raises
    ------
    UsageError
        A card was asked for, and the method or the model does not run there.
    """
    if chosen == CPU:
        return CPU
    obstacle = find_obstacle(method, prepared)
    if obstacle and asked == CUDA:
        raise UsageError(f"device is {CUDA!r}, but {obstacle}")
    return CPU if obstacle else CUDA


def method_on(device: Device, method: Method, prepared: Prepared) -> Method:
    """Return a method as it runs on a device.

    Parameters
    ----------
    device : {"cpu", "cuda"}
        By `fit_device`, perhaps on another machine.

    Raises
    ------
    UsageError
        This machine has no card; or, when the method's kernel is called, its memory is too small, or it fails.
    """
    if device == CPU:
        return method
    _has_card(CUDA)
    there = on_card(method, prepared)

    def attribute(buffers: Buffers, tables: Any) -> None:
        try:
            there.kernel(buffers, tables)
        except NoRoom as error:
            raise UsageError(f"device is {CUDA!r}, but {error}; end what else uses the card, or take device {CPU!r}") from error
        except Exception as error:  # what numba-cuda and its bindings raise has no ancestor of its own
            if type(error).__module__.partition(".")[0] not in RAISING:
                raise
            raise UsageError(f"device is {CUDA!r}, but the card failed: {' '.join(str(error).split())}; try device {CPU!r}") from error

    return replace(there, kernel=attribute)


def can_compute(device: Device) -> bool:
    """Return whether this machine computes what a device did, to the same bits."""
    return device == CPU or _has_card(AUTO)


def task_resources(device: Device) -> dict[str, dict[str, int]]:
    """Return the arguments of ``Client.submit`` for tasks that compute on a device."""
    return {"resources": RESOURCES} if device == CUDA else {}
