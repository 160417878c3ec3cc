"""What every commit stands on: the open workspace, one view of a commit, a draft and its one commit;
decisions, and whether the history is what runs and decisions made.

It imports the domains and below. Begin with ``host``, ``draft`` and ``decisions.decision_context``.
"""
