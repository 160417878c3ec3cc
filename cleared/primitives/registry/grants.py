"""Every grant that a header can give: its name, what it allows, and how much can go wrong with it.

A primitive names its grant (``@primitive(grant=…)``). A proposal's card, the reference and the approval show the words
that stand here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class Grant:
    """``allows`` reads on after "may". ``risk``: low reads; medium shows or marks something; high changes the books or
    starts something else."""

    name: str
    allows: str
    risk: Literal["low", "medium", "high"]


GRANTS: Final = {
    grant.name: grant
    for grant in (
        Grant("importer.read", "read the bank files in import/", "low"),
        Grant("importer.write", "mark bank files as done and set bank lines aside", "medium"),
        Grant("journal.read", "read the journal", "low"),
        Grant("journal.write", "post entries to the journal", "high"),
        Grant("journal.void", "void entries", "high"),
        Grant("money.read", "split amounts", "low"),
        Grant("accounts.read", "read the chart of accounts", "low"),
        Grant("git.commit", "word its commit", "medium"),
        Grant("git.read", "read the history", "low"),
        Grant("queue.read", "read the review queue", "low"),
        Grant("queue.write", "ask you about entries", "medium"),
        Grant("queue.ask", "stop and ask you", "medium"),
        Grant("config.read", "read settings", "low"),
        Grant("ctx.log", "write to the log", "low"),
        Grant("ctx.read", "ask for the date", "low"),
        Grant("ctx.emit", "start other agents by events", "high"),
        Grant("script.run", "run shared scripts", "medium"),
        Grant("loop.read", "read how the loop's jobs are", "low"),
        Grant("task.read", "read the tasks", "low"),
        Grant("task.propose", "propose tasks to you", "medium"),
        Grant("loop.enqueue", "have the loop run jobs", "high"),
        Grant("llm.classify", "ask a language model to classify", "medium"),
        Grant("llm.summarize", "ask a language model to summarize", "medium"),
        Grant("notify.send", "send you messages", "medium"),
    )
}
"""Name → grant."""
