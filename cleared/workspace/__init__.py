"""A workspace on disk: where its files lie, which names are safe, who may write, how a new one begins."""
