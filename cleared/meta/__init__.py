"""Sessions: a language model reads a workspace and proposes changes of its agents. It never runs or approves one."""
