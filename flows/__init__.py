"""Prefect flows: when runs happen, and what Prefect shows of them."""

import os

# A flow called directly starts a server of its own, which on a cold machine takes longer than Prefect's 20 s. Prefect reads this on import; an
# existing value is kept.
os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "120")
