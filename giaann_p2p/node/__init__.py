"""The asyncio shells of peers: they feed events to `swarm` and carry out what it decides."""
