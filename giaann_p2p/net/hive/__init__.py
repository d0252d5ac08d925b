"""The real network: libp2p streams and a Kademlia DHT, as provided by hivemind.

Only this package imports hivemind, and none of hivemind's types or errors leave it. Importing
hivemind takes about a second and 280 MB, so the rest of giaann_p2p.net does not import this
package.
"""
