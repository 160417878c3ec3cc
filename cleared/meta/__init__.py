"""Sessions: a language model reads a workspace and proposes changes of its agents. It never runs or approves one.

It imports ``work`` and below. Begin with ``model_session`` and ``session_loop``.
"""
