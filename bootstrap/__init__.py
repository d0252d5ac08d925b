"""The bootstrap peer: founds a swarm, keeps its manifest, and introduces peers to each other."""
