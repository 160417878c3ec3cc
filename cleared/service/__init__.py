"""``cleared up``: the process that waits for triggers and has agents run, one at a time."""
