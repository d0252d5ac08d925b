"""The shells around the peer directory: joining, looking up, announcing, admission."""
