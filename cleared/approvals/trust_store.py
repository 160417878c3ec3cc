"""Whose approvals count here: kept outside the repository, a file for each workspace, on this machine only.

It also remembers what was withdrawn by a rollback, so that bringing an old commit back with plain git does not bring
its approval back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from cleared.approvals.keys import cleared_home
from cleared.errors import WorkspaceError
from cleared.light_dataclass import dataclass
from cleared.safe_files import write_atomic

_ID = re.compile(r"[0-9a-f]{32}")


def is_workspace_id(text: str) -> bool:
    """Whether a text is a workspace's id; it comes from a file that anybody may have written, and names one here."""
    return _ID.fullmatch(text) is not None


@dataclass(slots=True, eq=False, repr=False)
class Trust:
    """``keys``: public key → whose it was said to be. ``withdrawn``: ids of records that count no more. ``barred``:
    ``path@digest`` of a version → when it was rolled back; approvals from before then count no more.
    ``path@disabled`` → when an agent was disabled."""

    workspace: str
    keys: dict[str, str] = field(default_factory=dict)
    withdrawn: set[str] = field(default_factory=set)
    barred: dict[str, str] = field(default_factory=dict)
    newest: dict[str, str] = field(default_factory=dict)
    """Path of a record of settings → when the last one that was made here was made; an older one counts no more."""
    runs: dict[str, str] = field(default_factory=dict)
    """Key of another machine's runs → whose it was said to be: it asks and answers, and approves nothing."""
    questions: dict[str, Any] | None = None
    """Card → ticket, of questions from before there were tickets; None: it was not looked for them yet."""

    def save(self) -> None:
        """Raises ``WorkspaceError`` where it cannot be written."""
        if not is_workspace_id(self.workspace):
            raise WorkspaceError("this workspace has no id yet: nothing was approved in it")
        path = _trust_path(self.workspace)
        data = {"keys": self.keys, "withdrawn": sorted(self.withdrawn), "barred": self.barred,
                "newest": self.newest, "runs": self.runs, "questions": self.questions}  # fmt: skip
        write_atomic(path, (json.dumps(data, indent=1) + "\n").encode("utf-8"))


def load_trust(workspace: str) -> Trust:
    """What this user trusts of a workspace; nothing where nothing was said yet."""
    if not is_workspace_id(workspace):
        return Trust(workspace)
    path = _trust_path(workspace)
    try:
        data = json.loads(path.read_bytes())
        texts = {
            name: {str(k): str(v) for k, v in data.get(name, {}).items()}
            for name in ("keys", "barred", "newest", "runs")
        }  # fmt: skip
        old = data.get("questions")
        return Trust(
            workspace, withdrawn={str(i) for i in data["withdrawn"]}, questions=dict(old) if old is not None else None,
            **texts,
        )  # fmt: skip
    except (FileNotFoundError, NotADirectoryError):
        return Trust(workspace)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise WorkspaceError(
            f"{path} is damaged", remedy="Delete it, then say again whom you trust: cleared trust."
        ) from None


def withdraw_approvals(workspace: str, records: Iterable[str], version: str, at: str) -> Trust:
    """From now on count neither these records nor others of this version from before ``at`` on this machine.

    Returns what was trusted before, to be saved again if nothing comes of it.
    """
    trust, before = load_trust(workspace), load_trust(workspace)
    trust.withdrawn |= set(records)
    trust.barred[version] = at
    trust.save()
    return before


def withdraw_questions(workspace: str, cards: Iterable[str]) -> None:
    """From now on never continue the runs of these questions, even if the record of their answer is lost."""
    trust = load_trust(workspace)
    trust.withdrawn |= set(cards)
    trust.save()


def remember_questions(workspace: str, tickets: Mapping[str, Any]) -> None:
    """These are the tickets of questions from before there were any; no others get one."""
    trust = load_trust(workspace)
    trust.questions = dict(tickets)
    trust.save()


def allow_version(workspace: str, version: str, at: str) -> None:
    """Let what is approved at ``at`` count though the clock has gone back since the version was rolled back."""
    trust = load_trust(workspace)
    if trust.barred.get(version, "") > at:
        trust.barred[version] = at
        trust.save()


def remember_newest(workspace: str, path: str, at: str) -> None:
    """A record of settings was made here at this time: older ones count no more."""
    trust = load_trust(workspace)
    trust.newest[path] = at
    trust.save()


def trust_reviewers(workspace: str, people: Mapping[str, str]) -> None:
    """Trust those (key → name) whom somebody here has named as reviewers: that says it."""
    trust = load_trust(workspace)
    trust.keys = {**people, **trust.keys}
    trust.save()


def remember_disabled(workspace: str, path: str, at: str) -> None:
    """An agent was disabled at this time: only what is enabled later counts."""
    trust = load_trust(workspace)
    trust.barred[disabled_key(path)] = at
    trust.save()


def forget_disabled(workspace: str, path: str) -> None:
    """Somebody has enabled the agent on this machine."""
    trust = load_trust(workspace)
    if trust.barred.pop(disabled_key(path), None) is not None:
        trust.save()


def disabled_key(path: str) -> str:
    """An agent that was disabled, as ``Trust.barred`` names it."""
    return f"{path}@disabled"


def version_key(path: str, digest: str) -> str:
    """A version as ``Trust.barred`` names it."""
    return f"{path}@{digest}"


def trust_folder() -> Path:
    """Where the files of all workspaces lie; it is written to whenever one of them changes."""
    return cleared_home() / "workspaces"


def _trust_path(workspace: str) -> Path:
    return trust_folder() / f"{workspace}.json"
