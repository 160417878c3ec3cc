"""The page: decide, look into anything, in a browser; webhooks and the HTTP API. Needs the packages of ``[web]``.

It imports ``api`` and below. Begin with ``application``.
"""
