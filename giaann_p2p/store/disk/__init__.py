"""The disk half: files, a log of checksummed records, and how damage is told from a torn end."""
