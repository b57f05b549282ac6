"""From a job to a plan: inputs listed, refusals, work items, projected memory."""
