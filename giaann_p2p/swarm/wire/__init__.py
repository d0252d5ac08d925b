"""Messages and signed values that peers exchange. Nothing here makes a decision."""
