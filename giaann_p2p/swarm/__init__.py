"""The swarm's decisions: code without I/O, which takes events and the time and returns actions."""
