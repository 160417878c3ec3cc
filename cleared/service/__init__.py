"""The service: the process that waits for triggers and runs agents for them.

``cleared up`` runs agents by their triggers; ``cleared loop`` runs jobs one at a time.
"""
