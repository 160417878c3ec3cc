"""The orchestrator of tasks: the only one who appends to their ledger, and the only one who says "completed".

It takes tasks in, hands them out, verifies what was done, and commits it. The files are ``cleared.jobs.tasks``.
"""
