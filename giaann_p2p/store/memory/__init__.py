"""The store's columns in memory, as compact arrays for many readers and one writer at a time."""
