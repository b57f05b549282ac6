"""Prefect flows: when a run happens, and what is shown of it."""

import os

# A flow that is called directly gets a server of its own, which on a cold machine needs longer to start than the 20 s that Prefect gives it.
# Prefect reads this when it is imported; whoever set it before is heard.
os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "120")
