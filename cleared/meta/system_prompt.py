"""What a model is told at the start of a session: one text, built from the workspace.

The text comes with the program (``meta.md``). A workspace may have its own, ``templates/meta.md``, and rules of the
house, ``rules/*.md``. Both are taken only as approved: whoever can push could otherwise tell the model what to do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from cleared.base.clock import find_day
from cleared.base.short_text import list_lines
from cleared.books import queries
from cleared.changes.host import Host
from cleared.gate.language_guide import describe_triggers, read_examples, read_language
from cleared.gate.proposals.own_words import INSTRUCTIONS
from cleared.git import Snapshot
from cleared.runs import run_queries
from cleared.runs.approved_scripts import Scripts
from cleared.sandbox.trigger_kinds import ON_DEMAND

RULES_FOLDER: Final = "rules"
OWNER_COMMANDS: Final = {
    "bank add FILE": "a new bank account, or a bank's CSV that is not understood yet",
    "teach WORDS ACCOUNT": "bank lines with these words always go to that account; you can propose the same, as a row "
    "in `agents/ingest.py`",
    "accounts add NUMBER NAME --type expense": "a new account in the chart",
    "config set notifications.daily_digest_time 06:00": "when the built-in digest of what waits is sent",
    "config set notifications.address ME@EXAMPLE.COM": "messages by mail: this, then notifications.smtp_host and "
    "notifications.smtp_user, then notifications.method smtp",
    "definition approve records/NAME.yaml": "the columns of a table",
    "review": "decide about everything that waits",
}
"""What a person says instead of having a script made: command → what for."""
_PLACEHOLDER: Final = re.compile(r"\{\{([a-z_]+)\}\}")
_MOST_AGENTS: Final = 200
_MOST_ACCOUNTS: Final = 1_000
_MOST_RULE_BYTES: Final = 32_768


class SystemPrompt(Struct, frozen=True):
    """``source``: the file it was made from. ``notices``: what was left out, and why, for the user."""

    text: str
    source: str
    notices: tuple[str, ...] = ()


def build_system_prompt(host: Host) -> SystemPrompt:
    """The text for a session that starts now. Raises ``WorkspaceError`` where the workspace cannot be read."""
    with host.open_last_commit() as snapshot:
        texts = _ApprovedTexts(Scripts(host, snapshot), snapshot)
        template, source = texts.read_template()
        house_rules = texts.read_house_rules()
    parts: Mapping[str, Callable[[], str]] = {
        "business": lambda: _one_line(host.config.business.name)[:80],
        "currency": lambda: host.config.business.currency,
        "today": lambda: find_day(host.clock.now(), host.config.business.timezone).isoformat(),
        "timezone": lambda: host.config.business.timezone,
        "messages": lambda: _describe_messages(host),
        "triggers": describe_triggers,
        "primitives": lambda: _describe_primitives(host),
        "commands": lambda: "\n".join(f"- `cleared {command}`: {what}" for command, what in OWNER_COMMANDS.items()),
        "accounts": lambda: _list_accounts(host),
        "agents": lambda: _list_agents(host),
        "house_rules": lambda: house_rules,
        "examples": read_examples,
    }
    # One pass: what a part holds is never searched for placeholders.
    text = _PLACEHOLDER.sub(lambda match: parts[match[1]]() if match[1] in parts else match[0], template)
    return SystemPrompt(host.redactor.redact_text(text), source, tuple(texts.notices))


def read_shipped_template() -> str:
    """The text that comes with the program, to begin an own one with."""
    text = (Path(__file__).parent / "meta.md").read_text(encoding="utf-8")
    return text.replace("{{language}}", read_language())


class _ApprovedTexts:
    """Files of the workspace that a person has approved as they are; notes which are left out."""

    def __init__(self, scripts: Scripts, snapshot: Snapshot) -> None:
        self._scripts, self._snapshot = scripts, snapshot
        self.notices: list[str] = []

    def read_template(self) -> tuple[str, str]:
        own = self._read_approved(INSTRUCTIONS)
        return (own, INSTRUCTIONS) if own is not None else (read_shipped_template(), "cleared/meta/meta.md")

    def read_house_rules(self) -> str:
        rules = []
        for path in sorted(self._snapshot.list_entries(RULES_FOLDER)):
            if path.endswith((".md", ".txt")) and path.count("/") == 1:
                text = self._read_approved(path)
                if text is not None:
                    rules.append(f"#### {path}\n\n{text.strip()[:_MOST_RULE_BYTES]}")
        return "\n\n".join(rules) or "None."

    def _read_approved(self, path: str) -> str | None:
        data = self._snapshot.read_file(path)
        if data is None:
            return None
        if not self._scripts.approvals.verify_version(path, data).may_run:
            self.notices.append(
                f"{path} is left out: nobody has approved it as it is. Have it approved: cleared agent propose {path}."
            )
            return None
        return data.decode("utf-8", "replace")


def _describe_messages(host: Host) -> str:
    """Whether what agents send reaches the owner, and when the built-in digest comes."""
    settings = host.config.notifications
    time = settings.daily_digest_time
    digest = f"the built-in digest of what waits at {time}" if time else "no built-in digest"
    if settings.method in (None, "none"):
        return f"Messages are off (`notifications.method`): what agents send reaches nobody, nor does {digest}."
    return f"Messages of agents reach the owner, and {digest} does." if time else "Messages of agents reach the owner."


def _describe_primitives(host: Host) -> str:
    """Every primitive with the names of its arguments, by grant; the rest is told on demand."""
    by_grant: dict[str, list[str]] = {}
    for primitive in host.registry.values():
        arguments = ", ".join(param.name + ("" if param.required else "?") for param in primitive.takes.params)
        by_grant.setdefault(primitive.grant, []).append(f"{primitive.name}({arguments})")
    return "\n".join(f"- {grant}: {', '.join(calls)}" for grant, calls in by_grant.items())


def _list_accounts(host: Host) -> str:
    accounts = queries.read_accounts(host)
    shown = [account for account in accounts if account["status"] == "open"][:_MOST_ACCOUNTS]
    by_type: dict[str, list[str]] = {}
    for account in shown:
        by_type.setdefault(account["account_type"], []).append(
            f"{account['account_id']} {_one_line(account['account_name'])}"
        )
    lines = [f"- {kind}: {'; '.join(names)}" for kind, names in by_type.items()]
    hidden = sum(account["status"] == "open" for account in accounts) - len(shown)
    return "\n".join([*lines, *([f"- … and {hidden} more"] if hidden else [])])


def _list_agents(host: Host) -> str:
    lines = []
    for agent in run_queries.read_agents(host):
        if agent["state"] in ("approved", "starter"):
            triggers = ", ".join(agent["trigger"]) or ON_DEMAND.name
            lines.append(f"- `{agent['name']}` ({triggers}): {_one_line(agent['description'])}")
        else:  # what it says of itself was read by nobody
            lines.append(f"- `{agent['name']}` ({agent['state']})")
    return "\n".join(list_lines(lines, _MOST_AGENTS, "- … and {} more")) or "None yet."


def _one_line(text: object) -> str:
    return " ".join(str(text).split())[:200]
