"""Training while strangers push poison at full rate, beside training alone."""
