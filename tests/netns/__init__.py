"""Swarms of real peers on networks that are broken on purpose: see docs/networks.md."""
