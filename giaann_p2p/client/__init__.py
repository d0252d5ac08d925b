"""A swarm as those see it who use it and hold nothing of it."""
