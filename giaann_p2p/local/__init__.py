"""A swarm on this machine: many real peer processes on loopback, in one folder, supervised.

The supervisor is a process that watches all peers (`supervisor`). Another process, the zygote,
imports the modules that peers need, which takes seconds and hundreds of megabytes, and forks the
peers (`zygote`). The process that started the swarm, and any later client, talks to the supervisor
over a socket in the folder (`control`, `remote`). If the supervisor, the zygote or (unless the
swarm is detached) the process that started it is killed, the others end the whole swarm. Neither
the supervisor nor its clients import torch or hivemind. Everything here is for Linux only.
"""
