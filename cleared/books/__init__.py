"""The first domain: bank files in, a balanced double-entry journal out.

It imports ``review`` and below. Begin with ``books_domain``, ``books_draft`` and ``ledger.entry``.
"""
