"""Every grant that a header can give: its name, what it allows, and how much can go wrong with it.

A primitive names its grant (``@primitive(grant=…)``). A proposal's card, the reference and the approval show the words
that stand here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

from cleared.domains.installed_domains import cache_by_domains, load_domains


class Grant(Struct, frozen=True):
    """``allows`` reads on after "may". ``risk``: low reads; medium shows or marks something; high changes the
    records or starts something else."""

    name: str
    allows: str
    risk: Literal["low", "medium", "high"]


_OF_RUNTIME: Final = (
    Grant("money.read", "calculate with amounts", "low"),
    Grant("file.read", "read the files that it watches", "medium"),
    Grant("git.commit", "word its commit", "medium"),
    Grant("git.read", "read the history", "low"),
    Grant("queue.read", "read the review queue", "low"),
    Grant("queue.write", "ask you about entries", "medium"),
    Grant("queue.ask", "stop and ask you", "medium"),
    Grant("config.read", "read settings", "low"),
    Grant("ctx.log", "write to the log", "low"),
    Grant("ctx.read", "ask for the date and count days", "low"),
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


@cache_by_domains
def load_grants() -> Mapping[str, Grant]:
    """Name → grant: those of each domain, then the runtime's."""
    of_domains = [grant for domain in load_domains() for grant in domain.list_grants()]
    return {grant.name: grant for grant in (*of_domains, *_OF_RUNTIME)}
