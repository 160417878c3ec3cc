"""The first domain: bank files in, a balanced double-entry journal out.

It imports ``primitives`` and below. Begin with ``books_domain``, ``staged_books`` and ``ledger.entry``.
"""
