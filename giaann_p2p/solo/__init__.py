"""The single-machine brain: one process that learns, keeps it in a file, and answers."""
