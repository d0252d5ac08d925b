"""A running storage peer: it writes its store, answers requests, and acts on its decisions."""
