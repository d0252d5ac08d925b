"""Simulates a whole swarm in one process on virtual time: real nodes under injected faults."""
