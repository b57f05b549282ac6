"""The file of golden numbers: written, read and compared, bit for bit where the processor allows it."""

import json
from pathlib import Path

import numpy as np
from llvmlite import binding
from numba import config

NUMBERS = Path(__file__).parent / "numbers.json"
# Where a processor cannot multiply and add in one step, or no kernel is compiled, products are rounded before they are added: x86-64-v2 is 1.4e-15
# of an array's largest number away. Bits are the same on x86-64-v3 and v4, and on what lies between.
BOUND = 1e-13

Numbers = dict[str, dict[str, np.ndarray]]  # arrays by their names, by the names of cases


def keeps_bits() -> bool:
    """Whether kernels are compiled for a processor that fuses: its numbers are those of the file to the last bit."""
    fuses = binding.get_host_cpu_features().get("fma", False)
    return fuses and config.CPU_NAME is None and not config.DISABLE_JIT


def write_numbers(found: Numbers, path: Path = NUMBERS) -> None:
    """Write all digits: a line for every array, with its shape."""
    lines = [
        f" {json.dumps([case, name, value.shape, [each.hex() for each in value.ravel().tolist()]], ensure_ascii=False)}"
        for case, arrays in found.items()
        for name, value in arrays.items()
    ]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n")


def read_numbers(path: Path = NUMBERS) -> Numbers:
    """Read them again."""
    found: Numbers = {}
    for case, name, shape, values in json.loads(path.read_text()):
        found.setdefault(case, {})[name] = np.array([*map(float.fromhex, values)]).reshape(shape)
    return found


def list_changes(kept: dict[str, np.ndarray], found: dict[str, np.ndarray], bits: bool) -> list[str]:
    """Say which arrays of a case have changed, and by how much of their largest number."""
    if {name: value.shape for name, value in kept.items()} != {name: value.shape for name, value in found.items()}:
        return [f"{sorted(found)}, kept are {sorted(kept)}, or their shapes differ"]
    changed = []
    for name, value in kept.items():
        same = np.array_equal(value, found[name], equal_nan=True)
        apart = 0.0 if same else float(np.abs(value - found[name]).max(initial=0.0) / np.abs(value).max(initial=0.0))
        if not same and not (not bits and apart <= BOUND):
            changed.append(f"{name} by {apart:.1e} of its largest number")
    return changed
