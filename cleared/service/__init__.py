"""The process that waits for triggers and runs agents for them.

``cleared up`` runs agents when their triggers fire; ``cleared loop`` runs jobs, one at a time, in the order they are
asked for.

It imports ``review`` and below. Begin with ``serving`` and ``workspace_service``.
"""
