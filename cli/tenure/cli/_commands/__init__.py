"""One module per command: its options, and nothing heavy until it runs."""
