"""Peers of the simulation that mean harm: they know all that a member, or a stranger, may know."""
