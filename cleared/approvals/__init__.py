"""Signed records of who approved which scripts, settings and tests, and whether they count on this machine."""
