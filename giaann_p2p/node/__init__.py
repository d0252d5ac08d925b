"""The asyncio code around the decisions of `swarm`: it passes events to them and acts on them."""
