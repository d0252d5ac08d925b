"""The asyncio shells of the swarm's peers: they feed the decisions, and do what those say."""
