"""The daemons of a swarm's peers: thin programs around the library `giaann_p2p`."""
