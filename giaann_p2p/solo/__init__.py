"""The single-machine brain: one process that learns texts, stores them, and answers prompts."""
