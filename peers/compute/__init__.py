"""The compute peer: learns for a swarm."""
