"""Planning: from a job to a plan with listed inputs, refusals, work items and projected memory."""
