"""Many workspaces on many machines: jobs of procrastinate on PostgreSQL, workers with clones, and git as the fence.

One workspace stays one line of history with one writer at a time. A job says that something has happened to a
workspace; its worker sets a clone to what was pushed, does what the service of one machine does, and pushes plainly.
Begin with ``workspace_job``, then ``worker`` and ``fleet_database``.
"""
