"""The command ``warm``: compilation of kernels ahead of runs, as for images."""

import os
import subprocess
import sys
import time
from typing import Annotated, Literal

from cyclopts import Parameter

from ...display.text import count
from ...errors import UsageError
from ..terminal.documents import write_document
from ..terminal.flags import INPUT, Json, Quiet
from ..terminal.terminal import complain, log, open_console, say, write_raw


def warm(
    *,
    cpu: Annotated[Literal["x86-64-v3", "x86-64-v4"] | None, Parameter(group=INPUT)] = None,
    methods: Annotated[str | None, Parameter(group=INPUT)] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Compile what runs call, so that no run has to. What later processes read it from is the folder of NUMBA_CACHE_DIR, or Numba's own choice.

    Parameters
    ----------
    cpu
        A level of processors instead of this one, which has to be of it. A process finds what was compiled for a level if its environment has
        NUMBA_CPU_NAME, the level, and NUMBA_CPU_FEATURES, which is empty.
    methods
        Names with commas between; by default all, and effects.
    quiet
        Show nothing but errors.
    json
        Write one JSON document instead.

    Returns
    -------
    int
        Exit code, also 0 where no folder can be written, which a warning says.

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where.
    """
    from leafledger.kernels import compiled as compiling

    from ...effects.warmup import warm_effects
    from ...methods.warmup import list_names, list_pieces

    names = None if methods is None else [name.strip() for name in methods.split(",")]
    pieces = [*list_pieces(names), *([("effects", warm_effects)] if names is None else [])]
    if cpu is not None and (os.environ.get("NUMBA_CPU_NAME"), os.environ.get("NUMBA_CPU_FEATURES")) != (cpu, ""):
        return _warm_level(cpu, methods, quiet, json)
    started, n_compiled, folder = time.perf_counter(), 0, compiling.find_folder()
    if folder is None:
        complain("nothing is compiled: no folder for compiled kernels can be written; set NUMBA_CACHE_DIR")
    for k, (what, work) in enumerate(pieces if folder else (), 1):
        with compiling.counted() as compiled:
            work()
        n_compiled += compiled.n_kernels
        if not quiet:
            log(f"{k} of {len(pieces)}: {what}: {f'{compiled.n_kernels} compiled' if compiled.n_kernels else 'were there'}")
    seconds = time.perf_counter() - started
    if json:
        said = {"cpu": compiling.name_cpu(), "folder": folder, "methods": names or list_names(), "compiled": n_compiled, "seconds": seconds}
        write_document(said)
    elif folder:
        say(open_console(quiet), f"{count(n_compiled, 'function')} compiled for {compiling.name_cpu()} in {seconds:.0f} s, kept in {folder}")
    return 0


def _warm_level(cpu: str, methods: str | None, quiet: bool, as_json: bool) -> int:
    """Compile in a subprocess for another processor, since Numba has one per process."""
    from leafledger.kernels.compiled import find_lacking

    lacking = find_lacking(cpu)
    if lacking:
        raise UsageError(f"--cpu is {cpu}, this machine's processor lacks {', '.join(lacking)}; compile on one that has it")
    given = [f"--cpu={cpu}", *([] if methods is None else [f"--methods={methods}"]), *["--quiet"] * quiet, *["--json"] * as_json]
    done = subprocess.run(  # noqa: S603 - this program
        [sys.executable, "-P", "-m", "leafledger", "warm", *given],
        env=os.environ | {"NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": ""},
        stdout=subprocess.PIPE,
        text=True,
    )
    write_raw(done.stdout)
    return done.returncode
