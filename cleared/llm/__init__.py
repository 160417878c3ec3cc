"""The one door to language models: which one, its key, its price, and what was spent.

It imports ``workspace`` and below. Begin with ``model_door``.
"""
