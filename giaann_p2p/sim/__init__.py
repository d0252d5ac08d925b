"""A whole swarm in one process on virtual time: the real decision code under injected faults."""
