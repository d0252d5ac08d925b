"""Asyncio shells around the decision code of `swarm`: they feed it events and act on its orders."""
