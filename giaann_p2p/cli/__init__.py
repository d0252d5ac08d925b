"""The `giaann` command: it parses arguments, calls the library, and prints the results."""
