"""The disk half: files, and a log of checksummed records that tells damage from a torn end."""
