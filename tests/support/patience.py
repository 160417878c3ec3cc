"""How long a test waits for what must come."""

PATIENCE = 300.0
"""Seconds. Nothing is judged by it: it only ends a test that would hang, also on a machine that is slow and busy."""
