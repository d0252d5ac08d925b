"""Membership: the peer directory, placement of shards, standing, and which peers to avoid."""
