"""Who approved which scripts, settings and tests: keys, pins, signed records, and whether they count on this machine.

It imports ``git`` and below. Begin with ``verification``.
"""
