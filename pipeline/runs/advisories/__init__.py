"""Advisories: what was wrong in versions of leafledger, and which finished runs it may concern."""
