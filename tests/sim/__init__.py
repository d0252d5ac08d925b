"""Histories of simulated swarms."""

HANGS = 2400
"""Seconds after which a test hangs: beside much else, a history may take many times its time."""
