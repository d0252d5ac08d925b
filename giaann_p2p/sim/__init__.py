"""A swarm in one process, under a clock of its own: the real decisions, every kind of fault."""
