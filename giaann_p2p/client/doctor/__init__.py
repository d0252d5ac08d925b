"""Diagnoses why a peer cannot join a swarm (`giaann doctor`): runs checks, and recommends remedies.

After a failed check the others are still run, unless they depend on its result.
"""
