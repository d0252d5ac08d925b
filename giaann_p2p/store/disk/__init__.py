"""The store's files on a disk, and a log of records that tells damage from a torn end."""
