"""What storage peers on a real network do in a second, beside a bare stream of hivemind's."""
