"""The decisions of the swarm: plain code that takes events and the time, and returns actions."""
