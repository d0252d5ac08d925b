"""A running compute peer: the shell around its decisions, and the processes that learn."""
