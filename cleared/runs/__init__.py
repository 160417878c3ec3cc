"""Runs: an event and an approved script become one commit, or nothing.

It imports ``changes`` and below. Begin with ``execution``.
"""
