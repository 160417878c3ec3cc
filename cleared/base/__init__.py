"""What every room stands on: errors and exit codes, clock, deadline, money and days, safe files and names, terminals.

It imports nothing of the package. Begin with ``errors``.
"""
