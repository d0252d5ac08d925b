"""Reads rows from their owners, caches them, and answers prompts with them."""
