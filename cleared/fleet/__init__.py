"""Workspaces in several clones: what one has not pushed is done again on top of what others have pushed.

It imports ``changes`` and below. Begin with ``clone_sync``; ``unpushed_work`` reads what is to be done again,
``redone_work`` does it.
"""
