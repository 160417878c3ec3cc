"""Job types, and jobs as files: the runtime directory, what is written there and how it is read.

What runs them is in ``cleared.loop``. The layout and the contracts follow the single-agent loop contract.
"""
