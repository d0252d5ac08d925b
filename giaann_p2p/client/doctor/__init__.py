"""Diagnoses why a peer cannot join a swarm: a series of checks, each with its remedy.

A failed check does not prevent the others, unless they depend on its result.
"""
