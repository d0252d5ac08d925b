"""How far a swarm scales: the tables of docs/scale.md, computed by the real code.

    python -m tests.benchmarks.scale              # make the tables anew, but for the measured one
    python -m tests.benchmarks.scale --measure    # that one, too
    python -m tests.benchmarks.scale --print      # print them, and leave the page as it is

The words between the tables are written by hand.
"""
