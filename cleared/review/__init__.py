"""What people decide about cards, and why an entry is as it is; knows nothing of terminals or pages.

It imports ``triggers`` and below. Begin with ``card_actions`` and ``queue_snapshot``.
"""
