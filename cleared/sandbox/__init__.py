"""Scripts: reading their header, refusing what they may not contain, running them in isolation, here or over a bridge.

It imports ``workspace`` and below. Begin with ``executor`` and ``script_session``; nothing is imported in this file,
as start-up reaches it.
"""
