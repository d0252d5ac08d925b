"""Clients of a swarm: they train and prompt it, but are no peers and hold no shards."""
