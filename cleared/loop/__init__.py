"""The loop: rotation, stops, results, and what a job may do while it runs.

``cleared up`` runs agents by their triggers; ``cleared loop`` runs jobs one at a time.
"""
