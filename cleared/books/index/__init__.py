"""An index of the committed books: balances, lists and searches without parsing the journals again.

It is made of what git has, by the ids that git gives, and is never a source of truth: without it, or with a damaged
one, every answer is the same, and takes longer.
"""
