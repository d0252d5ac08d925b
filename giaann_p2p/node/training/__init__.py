"""A running compute peer: the I/O around its decisions, and the processes that learn."""
