"""Cards: decisions asked of a person, as values, and the append-only files under ``queue/`` that hold them.

It imports ``domains`` and below. Begin with ``card`` and ``kinds``.
"""
