"""Training on a text: chunks are leased to compute peers, and their deltas pushed to all owners."""
