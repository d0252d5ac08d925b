"""The network layer: frames, connections, and transports between peers."""
