"""From a plan to parts, in this process or on a cluster."""
