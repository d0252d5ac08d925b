"""A peer as a member of its swarm: it joins, finds other peers, announces itself, checks tokens."""
