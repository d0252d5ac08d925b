"""Deltas as bytes: the one form for log, snapshots and wire; reading it trusts nothing."""
