"""Hostile peers of the simulation; they know all that a member or a stranger can know."""
