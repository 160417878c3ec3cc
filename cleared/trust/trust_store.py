"""Whose approvals count here: kept outside the repository, a file for each workspace, on this machine only.

It also remembers what was withdrawn by a rollback, so that bringing an old commit back with plain git does not bring
its approval back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from cleared.base.errors import WorkspaceError
from cleared.base.safe_files import write_atomic
from cleared.trust.approval_record import ApprovalRecord, digest_of
from cleared.trust.keys import own_key_mark
from cleared.workspace.location import trust_folder

_ID = re.compile(r"[0-9a-f]{32}")


def is_workspace_id(text: str) -> bool:
    """Whether a text is a workspace's id; it comes from a file that anybody may have written, and names one here."""
    return _ID.fullmatch(text) is not None


class Trust(Struct, eq=False):
    """``keys``: public key → whose it was said to be. ``withdrawn``: ids of records that count no more. ``barred``:
    ``path@digest`` of a version → when it was rolled back; approvals from before then count no more.
    ``path@disabled`` → when an agent was disabled; ``path@starter`` → when these books had a version of their own of
    what came with the program, or removed it."""

    workspace: str
    keys: dict[str, str] = {}
    withdrawn: set[str] = set()
    barred: dict[str, str] = {}
    newest: dict[str, str] = {}
    """Path of a record of settings → when the last one that counted here was made, and its id; an older one counts no
    more, nor does one that it took the place of here."""
    runs: dict[str, str] = {}
    """Key of another machine's runs → whose it was said to be: it asks and answers, and approves nothing."""
    settings: dict[str, Any] = {}
    """The protected settings that were last verified or approved here (``policy``), the digest of the file of their
    record (``record``), its key (``key``), and this user's (``key_file``): a damaged record does not make the books
    unreadable, and a good one is verified once."""

    def save(self) -> None:
        """Raises ``WorkspaceError`` where it cannot be written."""
        if not is_workspace_id(self.workspace):
            raise WorkspaceError("this workspace has no id yet: nothing was approved in it")
        path = _trust_path(self.workspace)
        data = {
            "keys": self.keys,
            "withdrawn": sorted(self.withdrawn),
            "barred": self.barred,
            "newest": self.newest,
            "runs": self.runs,
            "settings": self.settings,
        }
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
        }
        settings = dict(data.get("settings", {}))
        if settings and not (isinstance(settings["policy"], dict) and {"record", "key", "key_file"} <= settings.keys()):
            raise ValueError("not settings")
        return Trust(
            workspace,
            withdrawn={str(i) for i in data["withdrawn"]},
            settings=settings,
            **texts,
        )
    except (FileNotFoundError, NotADirectoryError):
        return Trust(workspace)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise WorkspaceError(
            f"{path} is damaged", remedy="Delete it, then say again whom you trust: cleared trust."
        ) from None


def restore_trust(before: Sequence[Trust]) -> None:
    """Save again what was trusted at first; nothing where nothing was remembered of before."""
    for trust in before[:1]:
        trust.save()


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


def allow_version(workspace: str, version: str, at: str) -> None:
    """Let what is approved at ``at`` count though the clock has gone back since the version was rolled back."""
    trust = load_trust(workspace)
    if trust.barred.get(version, "") > at:
        trust.barred[version] = at
        trust.save()


def remember_newest(record: ApprovalRecord) -> None:
    """This record counts here: those that lie in the same file and are older count no more, and settings need not be
    verified again. Raises ``WorkspaceError`` where that cannot be written down."""
    trust = load_trust(record.workspace)
    note_newest(trust, record)
    trust.save()


def note_newest(trust: Trust, record: ApprovalRecord) -> None:
    """The same, not yet saved."""
    at, _, last = trust.newest.get(record.file, "").partition(" ")
    if last and last != record.id and at <= record.at:  # one of the same second is not told by its time
        trust.withdrawn.add(last)
    trust.newest[record.file] = f"{record.at} {record.id}"
    if record.kind == "config":
        digest, policy = digest_of(record.render()), dict(record.policy)
        trust.settings = {"record": digest, "key": record.key, "key_file": own_key_mark(), "policy": policy}


def trust_reviewers(workspace: str, people: Mapping[str, str], bookkeepers: Collection[str] = ()) -> None:
    """Trust those (key → name) whom somebody here has named as reviewers: that says it. ``bookkeepers``: the keys of
    those of whom it was said that they approve nothing."""
    trust = load_trust(workspace)
    trust.keys = {key: name for key, name in {**people, **trust.keys}.items() if key not in bookkeepers}
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


def leave_starters(workspace: str, paths: Iterable[str], at: str) -> None:
    """From now on what came with the program at these paths counts as any script does: only when it is approved."""
    trust = load_trust(workspace)
    left = {key: at for path in paths if (key := starter_key(path)) not in trust.barred}
    if left:
        trust.barred |= left
        trust.save()


def starter_key(path: str) -> str:
    """A script whose starter counts no more, as ``Trust.barred`` names it."""
    return f"{path}@starter"


def version_key(path: str, digest: str) -> str:
    """A version as ``Trust.barred`` names it."""
    return f"{path}@{digest}"


def _trust_path(workspace: str) -> Path:
    return trust_folder() / f"{workspace}.json"
