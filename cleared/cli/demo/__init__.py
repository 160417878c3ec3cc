"""A workspace to try things on: half a year of a small consulting firm that never was."""
