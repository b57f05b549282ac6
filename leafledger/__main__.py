"""The command as ``python -m leafledger``."""

import sys

from leafledger.kernels.jit.collector import loading, own_process

own_process()
with loading():
    from leafledger.pipeline.command.cli import main

if __name__ == "__main__":
    sys.exit(main())
