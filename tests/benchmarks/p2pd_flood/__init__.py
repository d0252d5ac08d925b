"""What strangers can cost a p2pd: floods over a libp2p client written by hand."""
