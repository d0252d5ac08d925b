"""The storage peer: holds columns for a swarm."""
