"""What the swarm decides: plain code that takes events and the time, and returns actions."""
