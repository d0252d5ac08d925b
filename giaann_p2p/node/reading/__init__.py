"""Reads rows from the storage peers that own them, caches them, and answers prompts with them."""
