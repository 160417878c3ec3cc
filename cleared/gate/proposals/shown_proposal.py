"""A proposal as a person is shown it before deciding: its card and its code, read of one commit with their digest."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cleared.base.errors import ClearedError
from cleared.cards.card_section import CardSection
from cleared.changes.audit.attested_state import find_doubt
from cleared.changes.decisions.shown_cards import digest_shown
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.gate.candidate import approved_text
from cleared.gate.proposals.circumstances import digest_circumstances
from cleared.gate.proposals.crash_certificate import describe_certificate, read_certificate
from cleared.gate.proposals.obstacles import list_obstacles
from cleared.gate.proposals.proposal import Proposal, Proposals, find_proposal, load_proposals
from cleared.gate.proposals.proposal_card import list_card_lines, make_card
from cleared.git import Snapshot
from cleared.runs.approved_scripts import Scripts
from cleared.workspace.settings.loading import load_config
from cleared.workspace.settings.model import Config
from cleared.workspace.settings.protected_settings import read_public_settings


@dataclass(frozen=True)
class ShownProposal:
    """``code``: path → unified diff against what is approved now. ``is_made_here``: no file of it is committed so, but
    as part of the proposal; only a working copy had it. ``now``: lines of its card that hold at this moment, by part.
    """

    proposal: Proposal
    code: Mapping[str, str]
    is_made_here: bool
    now: Mapping[str, Sequence[str]]

    @property
    def digest(self) -> str:
        """The digest of all of it, as ``changes.decisions.shown_cards`` compares it: what holds at this moment, too. A
        person has not said yes to what came up since."""
        now = {name: list(lines) for name, lines in self.now.items() if lines}
        return digest_shown([self.proposal.digest_shown(), dict(self.code), now])

    @cached_property
    def card(self) -> tuple[CardSection, ...]:
        """All of its card, part by part: the proposal's own, whatever its card in the queue says."""
        return make_card(self.proposal, self.code, self.now)

    def to_dict(self) -> dict[str, Any]:
        """The proposal as ``--json`` prints it: its card as lines, and part by part without the code."""
        sections = [section.to_dict() for section in self.card if not section.is_code]
        return {**self.proposal.to_dict(), "card": list_card_lines(self.card), "sections": sections}

    @property
    def code_lines(self) -> tuple[str, ...]:
        return tuple(line for text in self.code.values() for line in text.removesuffix("\n").split("\n"))


def read_shown_proposal(host: Host, text: str) -> ShownProposal:
    """The proposal of that number or name, as it is in the last commit. Raises ``UsageError``."""
    with host.open_last_commit() as snapshot:
        proposals = load_proposals(CommittedSource(snapshot))
        return show_proposal(host, Scripts(host, snapshot), find_proposal(proposals, text), proposals)


def read_shown_proposals(host: Host, snapshot: Snapshot, folders: Iterable[str]) -> dict[str, ShownProposal]:
    """Folder → proposal, of those that are there."""
    wanted = set(folders)
    if not wanted:
        return {}
    proposals = load_proposals(CommittedSource(snapshot))
    scripts = Scripts(host, snapshot)
    return {p.folder: show_proposal(host, scripts, p, proposals) for p in proposals if p.folder in wanted}


def read_proposal_lines(host: Host, snapshot: Snapshot, folders: Iterable[str]) -> dict[str, list[str]]:
    """Folder → the lines of the proposal's card; none for one that is not there."""
    return {
        folder: list_card_lines(each.card) for folder, each in read_shown_proposals(host, snapshot, folders).items()
    }


def show_proposal(host: Host, scripts: Scripts, proposal: Proposal, proposals: Proposals) -> ShownProposal:
    """The proposal as it would be shown now. ``proposals``: all of them."""
    snapshot = scripts.snapshot
    olds: dict[str, bytes | None] = {}
    for file in proposal.data["files"]:
        olds[str(file["path"])] = approved_text(scripts, str(file["path"]), file["kind"])
    code = {path: _describe_code(host, proposal, path, old) for path, old in olds.items()}
    is_made_here = all(snapshot.read_file(path) != text for path, text in proposal.texts.items())
    now: dict[str, Sequence[str]] = {"checks": _list_certificates(scripts, proposal)}
    if proposal.status == "open":
        now["doubt"] = [*_list_doubts(host, snapshot), *_list_other_circumstances(host, scripts, proposal, olds)]
        now["obstacles"] = list_obstacles(host, proposal, olds, scripts.approvals)
        now["others"] = [
            *_list_rejected(proposal, proposals),
            *(_describe_other(each) for each in proposals if _competes(each, proposal)),
            *(f"Left out, as it cannot be read: {damage}" for damage in proposals.damaged),
        ]
    return ShownProposal(proposal, code, is_made_here, now)


def _describe_code(host: Host, proposal: Proposal, path: str, old: bytes | None) -> str:
    """What changes in a file. Of settings it is not said by the text that was committed before: what counts was
    approved, and anybody can commit another."""
    new = proposal.texts[path]
    if path != host.layout.config_file:
        return diff_texts(old, new, f"approved/{path}", f"{proposal.id}/{path}")
    settings = [_list_settings(host.config), b""]
    with suppress(ClearedError):  # the card says what is wrong with it
        settings[1] = _list_settings(load_config((new or b"").decode("utf-8-sig", "replace")))
    return diff_texts(settings[0], settings[1], "settings in force", f"settings of {proposal.id}") + diff_texts(
        old, new, f"committed/{path}", f"{proposal.id}/{path}"
    )


def _list_settings(config: Config) -> bytes:
    """A line a setting, without secrets."""
    return "".join(f"{key}: {value!r}\n" for key, value in sorted(read_public_settings(config).items())).encode()


def _list_certificates(scripts: Scripts, proposal: Proposal) -> list[str]:
    """How the versions that it would make live stood being killed, where that was tried."""
    texts = [(path, text) for path, text in proposal.texts.items() if text is not None]
    found = [read_certificate(scripts.approvals, path, text) for path, text in texts]
    return [describe_certificate(record) for record in found if record is not None]


def _list_doubts(host: Host, snapshot: Snapshot) -> list[str]:
    """Whether somebody edited what the card says of past runs, and of what it names."""
    if doubt := find_doubt(host, snapshot.repo, snapshot):
        said = f"{doubt[:1].upper()}{doubt[1:]}: names and past runs on this card may be somebody's edit"
        return [f"{said} (cleared check)."]
    return []


def _list_other_circumstances(
    host: Host, scripts: Scripts, proposal: Proposal, olds: Mapping[str, bytes | None]
) -> list[str]:
    changes = proposal.changes_against(olds)
    if proposal.data.get("circumstances") == digest_circumstances(host, scripts, changes, proposal.data["grants"]):
        return []
    return [
        "Settings, names or scripts are others by now than when this was examined: what stands here may not hold any "
        "more. Approving it has it examined anew first."
    ]


def _list_rejected(proposal: Proposal, proposals: Sequence[Proposal]) -> list[str]:
    """The decision about the last proposal of the same files before this one, where it was rejected; that the very same
    change was, its card has kept."""
    earlier = proposals[: proposals.index(proposal)]
    decided = [p for p in earlier if p.decision is not None and not set(p.paths).isdisjoint(proposal.paths)]
    last = decided[-1] if decided else None
    if last is None or last.decision is None or last.status != "rejected" or last.fingerprint == proposal.fingerprint:
        return []
    return [f"{last.id}, of the same file, was rejected by {last.decision.by}: {last.decision.reason}"]


def _competes(other: Proposal, proposal: Proposal) -> bool:
    return other is not proposal and other.status == "open" and not set(other.paths).isdisjoint(proposal.paths)


def _describe_other(other: Proposal) -> str:
    return (
        f"{other.id} waits, too: {other.title}. Approving one of the two leaves the other open; it is then examined "
        "anew, against what is live by then."
    )


def diff_texts(old: bytes | None, new: bytes | None, old_name: str, new_name: str) -> str:
    """A unified diff."""
    lines = difflib.unified_diff(_split_lines(old), _split_lines(new), old_name, new_name)
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def _split_lines(data: bytes | None) -> list[str]:
    """As programs read lines: what else could end one on a screen stays in its line, and is shown escaped."""
    return re.findall(r"[^\n]*\n|[^\n]+", (data or b"").decode("utf-8", "replace"))
