"""Training: a coordinator leases a text's chunks to compute peers, which push deltas to owners."""
