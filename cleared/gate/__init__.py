"""The gate: the checks that a change must pass before a person is asked about it, and its approval.

It imports ``runs`` and below. Begin with ``examination`` and ``proposals.submission``.
"""
