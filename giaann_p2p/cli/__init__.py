"""The `giaann` command: words in, library calls, words out. No logic lives here."""
