"""The second domain: typed tables in git, ``records/NAME.csv``, each with what its columns are, ``records/NAME.yaml``.

It imports what the runtime offers domains, and no other domain. Begin with ``records_domain``, then ``staged_tables``.
In ``agent_state`` is a small third: what each agent keeps from run to run.
"""
