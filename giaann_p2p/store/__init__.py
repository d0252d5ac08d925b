"""Columns in memory and on disk: shards of rows, a log, snapshots; no network, no asyncio."""
