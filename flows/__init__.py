"""Prefect flows: when a run happens, and what is shown of it."""

import os
from importlib.util import find_spec

# A flow that is called directly gets a server of its own, which on a cold machine needs longer to start than the 20 s that Prefect gives it.
# Prefect reads this when it is imported; whoever set it before is heard.
os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "120")

if find_spec("prefect") is None:
    raise ImportError("prefect is not installed, expected it beside flows; pip install prefect", name="prefect")
