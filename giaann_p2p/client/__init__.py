"""Clients of a swarm: they train and prompt it, but are not peers and hold no shards."""
