"""Job types, jobs and tasks as files: the runtime directory, what is written there and how it is read.

It imports ``trust`` and below; what runs them is in ``work``. Begin with ``job_types`` and ``runtime_directory``. The
layout and the contracts follow the single-agent loop contract.
"""
