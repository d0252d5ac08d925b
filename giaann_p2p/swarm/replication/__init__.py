"""A storage peer's decisions: which shards it holds, how it gets them, when it drops them."""
