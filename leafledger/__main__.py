"""The command as ``python -m leafledger``."""

import sys

from leafledger.pipeline.command.cli import main

if __name__ == "__main__":
    sys.exit(main())
