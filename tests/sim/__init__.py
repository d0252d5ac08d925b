"""Histories of simulated swarms."""

import os

HANGS = int(os.environ.get("GIAANN_HANGS", "2400"))
"""Seconds after which a test hangs: beside much else, a history may take many times its time."""
