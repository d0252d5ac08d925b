"""Swarms of real peers on networks that are broken on purpose: see `network` and `docs/networks.md`."""
