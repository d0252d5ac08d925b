"""Benchmarks: commands that measure and print; they are no tests and assert no time."""
