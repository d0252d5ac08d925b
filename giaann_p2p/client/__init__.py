"""A swarm from its users' side: clients that train and ask it, and hold no shards."""
