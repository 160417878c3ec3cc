"""The books for other programs and other people, and books that come from other programs.

It imports ``books`` and below. Begin with ``journal_export`` and ``migration.moving_in``.
"""
