"""The storage peer's program: it stores columns and serves their rows for a swarm."""
