"""What runs beside agents: the loop of jobs, cycles of coding engines, tasks.

It imports ``review`` and below. Begin with ``loop.machine``.
"""
