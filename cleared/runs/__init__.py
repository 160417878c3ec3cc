"""Runs: an event and an approved script become one commit, or nothing."""
