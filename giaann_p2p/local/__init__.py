"""A swarm on this machine: many real peer processes on loopback, in one folder, supervised.

One process, the supervisor, watches all peers (`supervisor`). It has them forked from another, the
zygote, which has imported what they need, because the imports take seconds and hundreds of
megabytes (`zygote`). The process that started the swarm, and any later client, talks to the
supervisor over a socket in the folder (`control`, `swarm`). If any of these processes is killed,
the others end everything. Neither the supervisor nor its clients import torch or hivemind. All of
it is for Linux.
"""
