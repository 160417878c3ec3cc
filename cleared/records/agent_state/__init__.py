"""What each agent keeps from run to run: small values in ``state/AGENT.json``, committed with what the run did.

To the runtime it is a domain like any other, and it imports no tables. Begin with ``state_domain``.
"""
