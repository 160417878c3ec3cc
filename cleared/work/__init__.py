"""What runs beside agents: the loop of jobs, cycles of coding engines, tasks.

It imports ``service`` and below. Begin with ``loop.machine``.
"""
