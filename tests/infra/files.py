"""Where the files of infra are, and the tools that read them."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
INFRA = ROOT / "infra"


def call(name, *arguments, **how):
    """Exit code and all that a tool of this environment says."""
    tool = Path(sys.executable).with_name(name)
    done = subprocess.run([str(tool), *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, **how)
    return done.returncode, done.stdout


def find(name):
    """A program of the machine, or None."""
    return shutil.which(name)
