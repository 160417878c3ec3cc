"""Proposals as they are kept: a folder each under ``queue/proposals/``, so that they travel with every clone.

    queue/proposals/P7-1a2b3c4d/proposal.json     what, by whom, what the gate said, what it would do
    queue/proposals/P7-1a2b3c4d/files/agents/…    the new texts
    queue/proposals/P7-1a2b3c4d/decision.json     what became of it

The second half of the name keeps apart what two clones have both numbered P7.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, Literal, get_args

from msgspec import Struct

from cleared.base.errors import Place, PolicyError, UsageError, WorkspaceError
from cleared.base.file_source import FileSource
from cleared.cards.card import card_id
from cleared.cards.kinds import PROPOSAL
from cleared.changes.decisions.shown_cards import digest_shown
from cleared.gate.candidate import Change
from cleared.gate.dry_run_inputs import DryRunPin
from cleared.gate.file_kinds import file_kind
from cleared.trust.approval_record import digest_of
from cleared.workspace.location import name_script

FOLDER: Final = "queue/proposals"
_NAME: Final = re.compile(r"P([1-9][0-9]{0,8})-[0-9a-f]{8}")
_WRITTEN: Final = re.compile(r"([Pp][0-9]+)(?:-([0-9a-f]{8,64}))?")
_RUN: Final = re.compile(r"[0-9A-Za-z-]{1,60}")
_VERSION: Final = 1

Status = Literal["open", "approved", "rejected", "stale", "superseded"]


class ProposalDecision(Struct, frozen=True):
    """What became of a proposal. ``reason``: why it was rejected, or what came instead."""

    status: Status
    by: str
    at: str
    reason: str = ""

    def render(self) -> bytes:
        data = {"status": self.status, "by": self.by, "at": self.at, "reason": self.reason}
        return (json.dumps(data, indent=1, ensure_ascii=False) + "\n").encode("utf-8")


class Proposal(Struct, frozen=True):
    """``data`` is all that ``proposal.json`` holds; what is used of it in decisions has a name here."""

    folder: str
    data: Mapping[str, Any]
    decision: ProposalDecision | None = None
    texts: Mapping[str, bytes | None] = {}

    @property
    def id(self) -> str:
        """``P7``."""
        return self.folder.split("-")[0]

    @property
    def number(self) -> int:
        return int(self.id[1:])

    @property
    def status(self) -> Status:
        return self.decision.status if self.decision else "open"

    @property
    def digest(self) -> str:
        return str(self.data["digest"])

    def digest_shown(self) -> str:
        """The digest of all that a person is shown of it (see ``changes.decisions.shown_cards``)."""
        texts = {path: digest_of(text) if text is not None else None for path, text in self.texts.items()}
        return digest_shown([self.folder, dict(self.data), texts])

    def has_digest(self, digits: str) -> bool:
        """Whether its digest begins so."""
        return self.digest.removeprefix("sha256:").startswith(digits)

    @property
    def fingerprint(self) -> str:
        return str(self.data["fingerprint"])

    @property
    def title(self) -> str:
        return str(self.data["title"])

    @property
    def paths(self) -> list[str]:
        return [str(f["path"]) for f in self.data["files"]]

    @property
    def agents(self) -> list[str]:
        """The agents it changes."""
        return [name_script(str(f["path"])) for f in self._agent_files]

    @property
    def _agent_files(self) -> list[Mapping[str, Any]]:
        return [f for f in self.data["files"] if f["kind"] == "agent"]

    @property
    def new_agents(self) -> list[str]:
        """Those of them that there are not yet."""
        return [name for name, f in zip(self.agents, self._agent_files, strict=True) if not f["old"]]

    @property
    def by_human(self) -> bool:
        return bool(self.data["author"]["human"])

    @property
    def is_asked(self) -> bool:
        """Whether a person asked a model for it in a session."""
        return self.data["author"].get("asked") is True

    @property
    def has_unreached(self) -> bool:
        """Whether it may do what no dry run showed: then one key does not approve it."""
        return bool(self.data.get("latent"))

    @property
    def pins(self) -> dict[str, DryRunPin]:
        return {agent: DryRunPin.from_dict(pin) for agent, pin in self.data["pins"].items()}

    @property
    def card(self) -> str:
        """The id of its card."""
        return card_id(PROPOSAL.name, self.folder)

    def changes_against(self, olds: Mapping[str, bytes | None]) -> list[Change]:
        """Its changes against what is approved now (``olds``)."""
        return [
            Change(str(f["path"]), f["kind"], olds[str(f["path"])], self.texts[str(f["path"])])
            for f in self.data["files"]
        ]

    def changed_file(self) -> str:
        """Which file is not the one that was reviewed; empty where all are."""
        for file in self.data["files"]:
            text = self.texts.get(file["path"])
            if ("" if text is None else digest_of(text)) != file["digest"]:
                return f"{FOLDER}/{self.folder}/files/{file['path']}"
        return ""

    def to_dict(self) -> dict[str, Any]:
        """The proposal as ``--json`` prints it, without its card (``proposal_card``)."""
        decided = self.decision
        return {
            "id": self.id,
            "status": self.status,
            **{k: v for k, v in self.data.items() if k not in ("version", "card")},
            "card_id": self.card,
            "decided_by": decided.by if decided else None,
            "decided_at": decided.at if decided else None,
            "reason": decided.reason if decided else None,
        }


def render_proposal(data: Mapping[str, Any]) -> bytes:
    def text(ascii_only: bool) -> str:
        return json.dumps({"version": _VERSION, **data}, indent=1, ensure_ascii=ascii_only, default=str) + "\n"

    try:
        return text(False).encode("utf-8")
    except UnicodeEncodeError:  # the name of a file in import/ that is not UTF-8
        return text(True).encode("ascii")


class Proposals(list[Proposal]):
    """All that can be read, oldest first. ``damaged``: what is wrong with each of the others, which hides none."""

    damaged: list[WorkspaceError]


def load_proposals(source: FileSource) -> Proposals:
    """All proposals."""
    folders: dict[str, None] = {}
    for path in source.list_paths(FOLDER):
        name = path[len(FOLDER) + 1 :].split("/", 1)[0]
        if _NAME.fullmatch(name):
            folders[name] = None
    found = Proposals()
    found.damaged = []
    for name in folders:
        try:
            found.append(_load_proposal(source, name))
        except WorkspaceError as error:
            found.damaged.append(error)
    found.sort(key=lambda p: (p.number, p.folder))
    return found


def _load_proposal(source: FileSource, name: str) -> Proposal:
    path = f"{FOLDER}/{name}/proposal.json"
    try:
        data = json.loads(source.read(path) or b"")
        if data.pop("version") != _VERSION:
            raise ValueError("another version")
        decision_json = source.read(f"{FOLDER}/{name}/decision.json")
        decision = ProposalDecision(**json.loads(decision_json)) if decision_json is not None else None
        _must_be_proposal(data, decision)
        texts = {f["path"]: source.read(f"{FOLDER}/{name}/files/{f['path']}") for f in data["files"]}
        return Proposal(name, data, decision, texts)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, UsageError) as error:
        raise WorkspaceError(
            f"this is not a proposal that was made here: {str(error)[:200]}",
            place=Place(path),
            remedy=f"Restore it from git, or remove it: git rm -r {FOLDER}/{name}, and commit that.",
        ) from None


def _must_be_proposal(data: Mapping[str, Any], decision: ProposalDecision | None) -> None:
    """Whoever can commit can write such a file: it names nothing but what can be proposed, each file as what it is.

    Raises ``ValueError`` and its like.
    """
    files = data["files"]
    if not files or len({f["path"] for f in files}) != len(files):
        raise ValueError("it names no file, or one twice")
    for file in files:
        if file_kind(file["path"]) != file["kind"]:
            raise ValueError(f"{file['path'][:100]!r} cannot be proposed as {str(file['kind'])[:20]!r}")
        if file["kind"] == "config" and not file["digest"]:
            raise ValueError("it removes the settings")
    author, history = data["author"], data["behaviour"]["history"]
    words = [
        data["title"],
        data["message"],
        data["base"],
        data["digest"],
        data["effects"],
        data["fingerprint"],
        data["created_at"],
        author["name"],
        *_words_of_card(data["card"]),
        *data["behaviour"]["warnings"],
        *history["failed"],
        *history["not_comparable"],
        *(f[k] for f in files for k in ("old", "digest")),
    ]
    if decision is not None:
        words += [decision.by, decision.at, decision.reason]
        if decision.status not in get_args(Status) or decision.status == "open":
            raise ValueError("its decision is none")
    if not all(isinstance(w, str) for w in words) or type(author["human"]) is not bool:
        raise ValueError("a field is not a text")
    "".join(words).encode("utf-8")  # a lone surrogate could not be written again
    times = [datetime.fromisoformat(data["created_at"])]
    for pin_data in data["pins"].values():
        pin = DryRunPin.from_dict(pin_data)
        times.append(pin.now)
        if not all(isinstance(t, str) for pair in pin.files.items() for t in pair):
            raise ValueError("a pinned file is not one")
        if pin.run is not None and not _RUN.fullmatch(pin.run):
            raise ValueError("a pinned run is not one")
    if not all(t.tzinfo is not None and 1900 < t.year < 3000 for t in times):
        raise ValueError("a time is not one")
    if not all(type(history[k]) is int for k in ("runs", "changed", "added", "removed")):
        raise ValueError("a count is not a number")
    for impact in (history, data["behaviour"]["synthetic"]):
        for entry in impact["entries"]:
            for shown in (entry["before"], entry["after"]):
                if shown is not None and not isinstance(shown, dict):
                    raise ValueError("a difference is not one")
            _ = [entry[k] for k in ("run", "change", "entry_id", "date", "amount", "description")]
        for output in impact.get("outputs", ()):
            if type(output["runs"]) is not int or not all(isinstance(output[k], list) for k in ("before", "after")):
                raise ValueError("what a run put out is not a list")
            _ = output["kind"]
    if not isinstance(data["grants"], dict) or not isinstance(data["checks"], dict):
        raise ValueError("a field is not a map")


def _words_of_card(card: Any) -> list[Any]:
    """What has to be texts; an older version kept its lines without their parts."""
    return [*card] if isinstance(card, list) else [word for name, lines in card.items() for word in (name, *lines)]


def find_proposal(proposals: Proposals, text: str) -> Proposal:
    """By ``P7``, by its folder's whole name, or with the beginning of its digest, ``P7-1a2b3c4d``, which most often is
    the same. Raises ``UsageError``, and ``WorkspaceError`` where that one cannot be read."""
    number, digits = split_name(text)
    matches = [p for p in proposals if p.folder == text]
    matches = matches or [p for p in proposals if p.id == number and p.has_digest(digits)]
    if len(matches) > 1:
        raise UsageError(
            f"{text} is {len(matches)} proposals, from different clones",
            remedy=f"Name one in full: {', '.join(p.folder for p in matches)}.",
        )
    if not matches:
        for error in proposals.damaged:
            if error.place is not None and f"/{number or text}-" in str(error.place.file):
                raise error
        waiting = [p.id for p in proposals if p.status == "open"]
        raise UsageError(
            f"there is no proposal {text!r}", remedy=f"Open: {', '.join(waiting) or 'none'} (cleared queue list)."
        )
    return matches[0]


def split_name(text: str) -> tuple[str, str]:
    """``P7-1a2b3c4d`` as number and beginning of the digest, which is empty for ``P7``; both for what names none."""
    match = _WRITTEN.fullmatch(text)
    return (match[1].upper(), match[2] or "") if match is not None else ("", "")


def require_number(proposal: Proposal, typed: str) -> None:
    """Raises ``PolicyError`` where no dry run shows all that it may do, and the person has not typed its number."""
    if proposal.has_unreached and typed.strip().upper() != proposal.id:
        raise PolicyError(
            f"{proposal.id} may do what no dry run showed, so one key does not approve it; nothing was approved",
            remedy=f"Read the first lines of its card and its code; then type {proposal.id} where it asks. In a "
            f"script: cleared agent approve {proposal.id}-{proposal.digest.removeprefix('sha256:')[:8]}",
        )


def must_be_open(proposal: Proposal) -> None:
    """Raises ``PolicyError`` where it was decided."""
    decided = proposal.decision
    if decided is not None:
        more = f": {decided.reason}" if decided.reason else ""
        raise PolicyError(
            f"{proposal.id} is {decided.status} already, by {decided.by} on {decided.at[:10]}{more}",
            remedy="Propose again if it should become live: cleared agent propose.",
        )


def next_number(proposals: Iterable[Proposal]) -> int:
    return max((p.number for p in proposals), default=0) + 1
