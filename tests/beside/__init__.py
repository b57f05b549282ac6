"""A night explained by Leafledger and by other tools, each in an environment of its own: what it took, and what there is to look at afterwards."""
