"""What travels between peers, and how: messages, frames, transports."""
