"""Encodes deltas and rows as bytes, for log, snapshots and wire; decoding trusts no input."""
