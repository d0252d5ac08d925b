"""Tests: unit (one file a module), property (against random input), plain (the yardstick)."""
