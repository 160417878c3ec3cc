"""What a domain is: a kind of records that agents work on, such as books.

It imports ``workspace`` and below; the runtime knows domains by what is here. Begin with ``domain``.
"""
