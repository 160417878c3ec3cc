"""Tasks as files: their definitions, the ledger of their states, how both are read, and who sealed what.

What works on them is ``cleared.work.task_runs``.
"""
