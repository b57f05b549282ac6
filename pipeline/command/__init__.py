"""The command leafledger, and what it shows."""
