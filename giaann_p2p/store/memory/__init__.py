"""The memory half: columns as compact arrays, for many readers and one writer at a time."""
