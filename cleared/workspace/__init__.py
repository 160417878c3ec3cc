"""A workspace on disk: where its files lie, who may write, its settings, how a new one begins.

It imports ``base``. Begin with ``location`` and ``settings.model``.
"""
