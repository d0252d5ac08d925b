"""Columns in memory and on disk: shards of rows, a log, snapshots. No network, no asyncio."""
