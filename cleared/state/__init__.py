"""What each agent keeps from run to run: small values in ``state/AGENT.json``, committed with what the run did.

To the runtime it is a domain like any other. It imports what the runtime offers domains. Begin with ``state_domain``.
"""
