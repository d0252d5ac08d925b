"""The bootstrap peer: founds a swarm, serves its manifest, and introduces peers to each other."""
