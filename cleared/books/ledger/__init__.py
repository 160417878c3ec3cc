"""The books as immutable values: chart, entries, monthly journals, bank facts, periods, checks.

Knows no git, no configuration and no clock: it is given bytes and gives back bytes.
"""
