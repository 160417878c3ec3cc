"""The loop: rotation, stops, results, and what a job may do while it runs.

``cleared up`` runs agents when their triggers fire; ``cleared loop`` runs jobs, one at a time, in the order they are
asked for.
"""
