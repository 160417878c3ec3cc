"""What a header can allow a script to do with the books."""

from __future__ import annotations

from cleared.primitives.registry.grants import Grant


def list_grants() -> list[Grant]:
    """The grants of the books."""
    return [
        Grant("importer.read", "read the bank files in import/", "low"),
        Grant("importer.write", "mark bank files as done and set bank lines aside", "medium"),
        Grant("journal.read", "read the journal", "low"),
        Grant("journal.write", "post entries to the journal and choose which wait for review", "high"),
        Grant("journal.void", "void entries", "high"),
        Grant("accounts.read", "read the chart of accounts", "low"),
    ]
