"""What people decide about cards, and why a record is as it is; knows nothing of terminals or pages.

It imports ``gate`` and below. Begin with ``record_review``, which says what is asked of a domain, and
``card_actions``.
"""
