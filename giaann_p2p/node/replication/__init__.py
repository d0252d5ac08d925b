"""A running storage peer: its store writer, its answers, and the shell around its decisions."""
