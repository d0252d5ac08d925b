"""Peers of real swarms that mean harm: the code of honest ones, its answers bent. See `cast`."""

import signal

BEGIN = signal.SIGUSR1
"""Asks a hostile peer to begin: until then it seems honest."""
