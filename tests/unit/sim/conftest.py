"""Every swarm that a test of the simulator founds ends with the test."""

from tests.sim.ending import every_swarm_ends

__all__ = ["every_swarm_ends"]
