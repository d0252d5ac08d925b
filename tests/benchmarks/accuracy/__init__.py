"""Learning curves: how well each model predicts text that it never learned, by how much it did."""
