"""The GIAANN model in plain Python: dictionaries and loops, nothing else.

Read it in the order a text takes: ``sequence`` (tokens become neurons), ``learn`` (neurons become
connections), ``predict`` (connections become words). Section numbers are those of the model's
design page, MODEL.md. It is the yardstick for the fast version, so it shares no code with it, and
it favours being obviously right over being quick.
"""
