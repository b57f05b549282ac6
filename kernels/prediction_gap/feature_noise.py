"""Noise of each feature: families with scales, values with probabilities, or functions, as parameters and as arrays in tables."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..method.parameters import LARGEST, Parameter, is_json, read_json
from .noise import EMPIRICAL, NOISE_NAMES, NOISES, Noise

ATOMS, OWN = len(NOISES), len(NOISES) + 1  # in place of a number in NOISES
EXPECTED = f"expected one of {', '.join(NOISE_NAMES)}, one with a scale as laplace:0.5, values with probabilities as -1:0.5,1:0.5, or one by feature"
_SIZES = np.concatenate((np.geomspace(1e-9, 0.1, 16), np.linspace(0.2, 10.0, 99), np.geomspace(20.0, 1e9, 17), [np.inf]))
POINTS = np.concatenate((-_SIZES[::-1], [0.0], _SIZES)).reshape(3, -1)  # ascending test points of a distribution function
ROUNDING = 1e-9  # tolerance of a probability
REAL = "biuf"  # kinds of numbers

Entry = str | Callable[[np.ndarray], np.ndarray]  # one feature's noise, in one spelling for equal ones


class NoiseArrays(NamedTuple):
    """Noise of the units that get noise, or of all of them where there is one."""

    family: np.ndarray  # (noises,) int64, number in NOISES, ATOMS, or OWN
    start: np.ndarray  # (noises + 1,) int64, atoms of each
    atom: np.ndarray  # (start[-1],) float64, in units of the scale
    probability: np.ndarray  # (start[-1],) float64
    own: np.ndarray  # (noises,) object, functions P(noise <= z) where the family is OWN; (0,) float64 where none is: tables on disk hold numbers


def _check_function(lower: Callable[[Any], Any]) -> None:
    """Refuse a function that is no distribution function at test points, between them, or at the extremes."""
    try:
        with np.errstate(all="ignore"):
            found = np.asarray(lower(POINTS.copy()))
    except Exception as error:  # a caller's function may raise anything
        raise ValueError(f"which fails: {' '.join(str(error).split())[:200]}, expected one that takes an array of z") from error
    if found.shape != POINTS.shape or found.dtype.kind not in REAL:
        raise ValueError(f"which makes {found.dtype} of shape {found.shape} of an array of shape {POINTS.shape}, expected probabilities of its shape")
    probability = found.astype(np.float64).ravel()
    ends = probability[[0, -1]].tolist()
    if not (np.abs(np.array(ends) - (0.0, 1.0)) <= ROUNDING).all():
        raise ValueError(f"which is {ends[0]:.6g} at minus infinity and {ends[1]:.6g} at infinity, expected a distribution function: 0 and 1")
    falls = np.flatnonzero(~(np.diff(probability) >= -ROUNDING))
    if falls.size:
        some = slice(falls[0], falls[0] + 2)
        (z, after), (p, below) = POINTS.ravel()[some].tolist(), probability[some].tolist()
        raise ValueError(f"which is {p:.6g} at {z:.6g} and {below:.6g} at {after:.6g}, expected a distribution function, which does not fall")


def _read_number(given: Any, least: float) -> float:
    value = float(given)
    if not (least <= value <= LARGEST):
        raise ValueError(given)
    return value + 0.0  # one zero


def _read_atoms(pairs: Sequence[Any]) -> str:
    """Write values with probabilities in one spelling; probabilities are divided by their sum when they are used."""
    found = sorted((_read_number(value, -LARGEST), _read_number(weight, 0.0)) for value, weight in pairs)
    if len({value for value, _ in found}) < len(found) or not sum(weight for _, weight in found) > 0:
        raise ValueError(pairs)
    return ",".join(f"{value!r}:{weight!r}" for value, weight in found if weight > 0)


def _read_text(text: str) -> str:
    family, *scale = text.split(":")
    if family not in NOISE_NAMES:
        return _read_atoms([atom.split(":") for atom in text.split(",")])
    if scale and family == EMPIRICAL:
        raise ValueError(text)
    return text if not scale else f"{family}:{_read_number(':'.join(scale), 0.0)!r}"


def read_entry(given: Any) -> Entry:
    """Read the noise of a feature: a family, one with a scale, values with probabilities as text or pairs, or P(noise <= z) of arrays."""
    if callable(given):
        _check_function(given)
        return given
    try:
        return _read_text(given) if isinstance(given, str) else _read_atoms(given)
    except (TypeError, ValueError):
        raise ValueError(EXPECTED) from None


def _are_atoms(given: Sequence[Any]) -> bool:
    """Tell pairs of numbers from noises of features."""
    return all(not isinstance(pair, str) and hasattr(pair, "__len__") and len(pair) == 2 and not hasattr(pair[0], "__len__") for pair in given)


def _read_noise(given: Any) -> Any:
    given = read_json(given, EXPECTED) if is_json(given) else given
    if isinstance(given, Mapping):
        return {name: read_entry(entry) for name, entry in given.items()}
    if isinstance(given, list | tuple) and given and not _are_atoms(given):
        return tuple(read_entry(entry) for entry in given)
    return read_entry(given)


NOISE = Parameter(
    "noise",
    NOISES[0].name,
    _read_noise,
    f"{', '.join(NOISE_NAMES[:-1])}, added to numeric features, or {EMPIRICAL}, which draws them anew; values with probabilities as -1:0.5,1:0.5; "
    'or one for each feature, as {"age": "laplace:0.5", "*": "normal"}',
    by_feature="normal",
)


def of_atoms(atoms: Iterable[tuple[float, float]]) -> Noise:
    """Make the noise of values z with probabilities."""
    known = tuple(atoms)
    lower, upper = (lambda z, above=above: sum(p * ((value > z) == above) for value, p in known) for above in (False, True))
    return Noise("atoms", lower, upper, known)


def _open(entry: Entry) -> tuple[Noise, float | None]:
    """Find what an entry names, and its own scale."""
    if not isinstance(entry, str):
        return Noise("given", entry, lambda z: 1.0 - entry(z)), None
    family, *scale = entry.split(":")
    if family == EMPIRICAL:
        return NOISES[0], None
    if family in NOISE_NAMES:
        return NOISES[NOISE_NAMES.index(family)], float(scale[0]) if scale else None
    pairs = [tuple(map(float, atom.split(":"))) for atom in entry.split(",")]
    total = sum(weight for _, weight in pairs)
    return of_atoms([(value, weight / total) for value, weight in pairs]), None


class FeatureNoise(NamedTuple):
    """Noise of all features of a model; no part of tables."""

    noises: tuple[Noise, ...]  # (features,)
    scale: np.ndarray  # (features,) float64
    empirical: np.ndarray  # (features,) bool, drawn from data instead


def of_features(given: Entry | Sequence[Entry], scale: np.ndarray) -> FeatureNoise:
    """Find the noise of every feature.

    Parameters
    ----------
    given : entry, or one for each feature, as the parameter reads them
    scale : (features,) float64, of the features whose entry has none of its own
    """
    entries = [given] * len(scale) if isinstance(given, str) or callable(given) else given
    found = [_open(entry) for entry in entries]
    scales = [other if own is None else own for (_, own), other in zip(found, scale.tolist(), strict=True)]
    empirical = [isinstance(entry, str) and entry == EMPIRICAL for entry in entries]
    return FeatureNoise(tuple(noise for noise, _ in found), np.array(scales, np.float64), np.array(empirical, bool))


def lay_out_noises(noises: Sequence[Noise]) -> NoiseArrays:
    """Write noises as arrays."""
    names = [noise.name for noise in NOISES]
    family = [ATOMS if noise.atoms else names.index(noise.name) if noise.name in names else OWN for noise in noises]
    own = np.array([noise.lower if number == OWN else None for noise, number in zip(noises, family, strict=True)], object)
    atoms = [atom for noise in noises for atom in noise.atoms]
    return NoiseArrays(
        np.array(family, np.int64),
        np.concatenate(([0], np.cumsum([len(noise.atoms) for noise in noises]))).astype(np.int64),
        np.array([value for value, _ in atoms], np.float64),
        np.array([probability for _, probability in atoms], np.float64),
        own if OWN in family else np.zeros(0),
    )


def take_up_noises(arrays: NoiseArrays) -> tuple[Noise, ...]:
    """Make noises of their arrays again."""
    found = []
    for m, number in enumerate(arrays.family.tolist()):
        if number == OWN:
            found.append(_open(arrays.own[m])[0])
        elif number == ATOMS:
            some = slice(arrays.start[m], arrays.start[m + 1])
            found.append(of_atoms(zip(arrays.atom[some].tolist(), arrays.probability[some].tolist(), strict=True)))
        else:
            found.append(NOISES[number])
    return tuple(found)
