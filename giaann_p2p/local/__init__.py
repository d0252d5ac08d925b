"""A swarm on this machine: many real peer processes on loopback, in one folder, watched.

One process, the supervisor, watches them all (`supervisor`). It has them forked from another, the
zygote, that has imported what they need, for that takes seconds and hundreds of megabytes
(`zygote`). Who started the swarm, and whoever comes later, talks to the supervisor over a socket in
the folder (`control`, `swarm`). Whichever of these is killed, the others take everything down.

Neither the supervisor nor its clients import torch or hivemind. All of it is for Linux.
"""
