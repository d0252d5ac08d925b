"""Why a peer cannot join a swarm: one check after the other, each with what helps.

A check that fails does not keep the others from being made, unless they need what it found.
"""
