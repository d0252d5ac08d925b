"""Encodes deltas as bytes, in one form for log, snapshots and wire; decoding trusts no input."""
