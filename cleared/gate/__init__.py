"""The gate: the checks that a change must pass before a person is asked about it."""
