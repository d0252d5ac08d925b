"""The network itself: libp2p streams and a Kademlia DHT, as hivemind brings them.

The only place that imports hivemind: nothing of it, neither a type nor an error, leaves this
package. Importing it takes a second and some 280 MB, so nothing else of giaann_p2p.net imports it.
"""
