"""The swarm's daemons: thin programs around `giaann_p2p`."""
