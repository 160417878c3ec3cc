"""Figures: how long things take, each against a baseline of the same run. ``python -m bench`` prints the table."""
