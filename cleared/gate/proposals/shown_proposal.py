"""A proposal as a person is shown it before deciding: its card and its code, read of one commit with their digest."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cleared.base.errors import WorkspaceError
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.gate.proposals.proposal import Proposal, find_proposal, load_proposals
from cleared.git import Snapshot
from cleared.runs.approved_scripts import Scripts


@dataclass(frozen=True, slots=True)
class ShownProposal:
    """``code``: path → unified diff against what is approved now. ``is_made_here``: no file of it is committed so, but
    as part of the proposal; only a working copy had it."""

    proposal: Proposal
    code: Mapping[str, str]
    is_made_here: bool

    @property
    def digest(self) -> str:
        """The digest of all of it, as ``changes.decisions.shown_cards`` compares it."""
        return self.proposal.digest_shown()

    @property
    def says(self) -> tuple[str, ...]:
        """What it would change, in words: the proposal's own, whatever its card in the queue says."""
        return tuple(str(line) for line in self.proposal.data["card"])

    @property
    def code_lines(self) -> tuple[str, ...]:
        return tuple(line for text in self.code.values() for line in text.removesuffix("\n").split("\n"))


def read_shown_proposal(host: Host, text: str) -> ShownProposal:
    """The proposal of that number or name, as it is in the last commit. Raises ``UsageError``."""
    with host.open_for_reading() as repo:
        snapshot = Snapshot(repo, repo.read_head())
        proposal = find_proposal(load_proposals(CommittedSource(snapshot)), text)
        return _show_proposal(host, snapshot, proposal)


def read_shown_proposals(host: Host, snapshot: Snapshot, folders: Iterable[str]) -> dict[str, ShownProposal]:
    """Folder → proposal, of those that are there; none where one cannot be read."""
    wanted = set(folders)
    try:
        proposals = load_proposals(CommittedSource(snapshot)) if wanted else []
    except WorkspaceError:
        return {}
    return {p.folder: _show_proposal(host, snapshot, p) for p in proposals if p.folder in wanted}


def _show_proposal(host: Host, snapshot: Snapshot, proposal: Proposal) -> ShownProposal:
    approvals = Scripts(host, snapshot).approvals
    code: dict[str, str] = {}
    for file in proposal.data["files"]:
        path = str(file["path"])
        is_script = file["kind"] in ("agent", "script")
        old = approvals.approved_version(path)[0] if is_script else snapshot.read_file(path)
        code[path] = diff_texts(old, proposal.texts[path], f"approved/{path}", f"{proposal.id}/{path}")
    is_made_here = all(snapshot.read_file(path) != text for path, text in proposal.texts.items())
    return ShownProposal(proposal, code, is_made_here)


def diff_texts(old: bytes | None, new: bytes | None, old_name: str, new_name: str) -> str:
    """A unified diff."""
    lines = difflib.unified_diff(_split_lines(old), _split_lines(new), old_name, new_name)
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def _split_lines(data: bytes | None) -> list[str]:
    """As programs read lines: what else could end one on a screen stays in its line, and is shown escaped."""
    return re.findall(r"[^\n]*\n|[^\n]+", (data or b"").decode("utf-8", "replace"))
