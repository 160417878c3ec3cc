"""The agents that have a vendor table, or know payees by ``if`` and ``elif``, as they are approved."""

from __future__ import annotations

from typing import NamedTuple

from cleared.base.errors import UsageError
from cleared.books.teaching.row_limits import RowLimits
from cleared.books.teaching.rule_chain import RuleChain, find_rule_chain
from cleared.books.teaching.vendor_table import VendorTable, find_vendor_table, replace_table
from cleared.runs.approved_scripts import Scripts
from cleared.workspace import template
from cleared.workspace.location import name_script


class ChainScript(NamedTuple):
    """An agent's script without a table, which knows payees by ``if`` and ``elif``."""

    path: str
    source: str
    chain: RuleChain

    @property
    def agent(self) -> str:
        return name_script(self.path)


class TableScript(NamedTuple):
    """An agent's script that a row is put into, or taken out of."""

    path: str
    source: str
    table: VendorTable
    is_starter: str = ""
    """Where it is the starter of this version instead of the approved text: why, in words."""

    @property
    def agent(self) -> str:
        return name_script(self.path)


def list_table_scripts(scripts: Scripts, agent: str = "") -> list[TableScript]:
    """The approved agents that have a table, by their path; ``agent``: only that one.

    Raises ``UsageError`` where there is no approved agent of that name.
    """
    approved = read_approved(scripts, agent)
    found = ((path, text, find_vendor_table(text, path)) for path, text in approved.items())
    return [TableScript(path, text, table) for path, text, table in found if table is not None]


def list_chain_scripts(scripts: Scripts) -> list[ChainScript]:
    """The approved agents that have no table, but a chain of ``if`` and ``elif`` that is understood, by their path."""
    found = []
    for path, text in read_approved(scripts).items():
        chain = find_rule_chain(text, path) if find_vendor_table(text, path) is None else None
        if chain is not None:
            found.append(ChainScript(path, text, chain))
    return found


def find_table_script(scripts: Scripts, agent: str, limits: RowLimits) -> TableScript:
    """The script to change: the only one that has a table, or that of ``agent``. One whose table has no room for
    ``limits`` is given as the starter of this version with its table, where it differs from an earlier one by no more.

    Raises ``UsageError`` where no agent has a vendor table, several have one and none is named, or it has no room.
    """
    having = list_table_scripts(scripts, agent)
    if len(having) > 1:
        names = ", ".join(each.agent for each in having)
        raise UsageError(f"several agents have a vendor table: {names}", remedy="Say which: --agent NAME.")
    if having:
        return _make_room(having[0]) if limits and not having[0].table.has_limits else having[0]
    for path, text in read_approved(scripts, agent).items():
        today = template.starter_files().get(path, b"").decode("utf-8")
        table = find_vendor_table(today, path)
        if table is not None and template.was_shipped(path, text.encode("utf-8")):
            why = f"{path} had no vendor table; the proposal brings the starter of this version, which has one"
            return TableScript(path, today, table, why)
    raise UsageError(
        f"{'the agent ' + agent if agent else 'no agent'} has {'no' if agent else 'a'} vendor table",
        remedy="A table is a list of (words, vendor, account, confidence) at the top of the script, as in "
        "agents/ingest.py of a new workspace. Ask a model for it: cleared meta, or write it and propose it.",
    )


def read_approved(scripts: Scripts, agent: str = "") -> dict[str, str]:
    """The texts of the approved agents, or of that one, by their path. Raises as ``list_table_scripts``."""
    folder = scripts.host.layout.agents_dir
    paths = (
        [scripts.host.layout.agent_path(agent)]
        if agent
        else [p for p in sorted(scripts.snapshot.list_entries(folder)) if p.endswith(".py") and p.count("/") == 1]
    )
    approved = {path: data for path in paths if (data := scripts.approvals.approved_version(path)[0]) is not None}
    if agent and not approved:
        raise UsageError(f"there is no approved agent {agent!r}", remedy="cleared agent list shows them.")
    return {path: data.decode("utf-8", "replace") for path, data in approved.items()}


def _make_room(script: TableScript) -> TableScript:
    """The starter of this version with the table of an earlier one, whose rows have four columns."""
    today = template.starter_files().get(script.path, b"").decode("utf-8")
    shipped = find_vendor_table(today, script.path)
    if shipped is not None and shipped.has_limits:
        as_shipped = replace_table(script.source, script.table, today, shipped)
        if template.was_shipped(script.path, as_shipped.encode("utf-8")):
            text = replace_table(today, shipped, script.source, script.table)
            table = find_vendor_table(text, script.path)
            assert table is not None
            why = f"{script.path} reads four columns; the proposal brings the starter of this version, with your table"
            return TableScript(script.path, text, table, why)
    raise UsageError(
        f"the table of {script.path} has four columns, so its rows are about all lines of their words",
        remedy="Have its loop read a fifth, as agents/ingest.py of a new workspace does, or teach it without "
        "--out, --in, --account, --min, --max and --split.",
    )
