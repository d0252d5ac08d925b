"""The compute peer's program: it learns chunks and answers prompts for a swarm."""
