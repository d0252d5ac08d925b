"""The real network: libp2p streams and a Kademlia DHT, as provided by hivemind.

This is the only package that imports hivemind, and none of hivemind's types or errors leave it.
Importing it takes a second and some 280 MB, so nothing else of giaann_p2p.net imports it.
"""
