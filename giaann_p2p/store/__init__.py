"""Stores a model's columns in memory and on disk; uses neither the network nor asyncio."""
