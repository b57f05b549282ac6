"""What somebody who looks for a fault wants to know of a machine and a model, without names of columns and places."""

import platform
import re
from importlib.metadata import distributions, requires
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ....in_memory.inspect.inspection import Inspection


def make_report(found: "Inspection") -> list[str]:
    """Make the lines of a report for an issue: versions, the processor, and the model's library, size and digest."""
    from leafledger.kernels.compiled import name_cpu

    # What else is installed says nothing of a fault, and something of who installed it.
    ours = {"leafledger", *(re.split(r"[^\w.-]", each)[0].lower() for each in requires("leafledger") or ())}
    versions = sorted({(each.name.lower(), each.version) for each in distributions() if each.name.lower() in ours})
    model = f"{found.library}, SHA-256 {found.digest}, objective {found.objective or 'not said'}, {len(found.outputs):,} outputs"
    trees = f"{found.n_trees:,} of {found.n_leaves:,} leaves, depth at most {found.depth.most}, {len(found.features):,} features"
    machine = f"{platform.system()} {platform.release()}, {platform.machine()}, {name_cpu()}, Python {platform.python_version()}"
    return [f"machine: {machine}", f"model: {model}", f"trees: {trees}", *(f"{name} {number}" for name, number in versions)]
