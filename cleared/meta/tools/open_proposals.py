"""Proposals of sessions that wait for the owner: a session is shown them, builds on them, and displaces none unseen."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from cleared.gate.proposals.proposal import Proposal
from cleared.gate.proposals.shown_proposal import diff_texts
from cleared.meta.tools.output_bounds import quote_data, truncate_middle
from cleared.meta.tools.session_files import SessionFiles
from cleared.meta.tools.tool import ToolFailed

_MOST_SHOWN: Final = 5
_DIFF_TOKENS: Final = 300
_HEAD: Final = (
    "These proposals of sessions wait for the owner. You read each file as the newest of them proposes it. What you "
    "propose for one of their files takes that proposal's place, so the other files of it become part of your draft:"
)


def describe_waiting(files: SessionFiles) -> str:
    """The proposals that wait, for the first request of a session; empty where none does. They count as shown then."""
    with files.open_commit():
        waiting = files.list_waiting()
        shown = waiting[-_MOST_SHOWN:]
        parts = [_describe_proposal(files, proposal) for proposal in shown]
    if not shown:
        return ""
    files.note_seen([p.folder for p in shown])
    more = len(waiting) - len(shown)
    return "\n".join([_HEAD, *parts, *([f"… and {more} older ones"] if more else [])])


def adopt_proposals(files: SessionFiles, own: str) -> list[str]:
    """Take the other files of every proposal that the draft builds on into the draft; the folders of those.

    ``own``: the folder of this session's last proposal, whose files are those of the draft already.
    """
    folders: list[str] = []
    while True:
        drafted = files.overlay.proposable_files
        found = next((p for p in files.list_base() if p.folder not in (own, *folders) and _overlaps(p, drafted)), None)
        if found is None:
            return folders
        folders.append(found.folder)
        missing = {path: files.find_proposed(path) for path in found.paths if path not in drafted}
        if missing:
            files.write_files({path: p.texts[path] for path, p in missing.items() if p is not None})


def refuse_surprises(files: SessionFiles, own: str, paths: Collection[str]) -> None:
    """Raises ``ToolFailed``, once for each, where a proposal for one of these files was not shown to the session, or
    was rejected since it was."""
    with files.open_commit():
        seen = files.overlay.read_seen()
        unseen = [p for p in files.list_waiting() if p.folder not in (own, *seen) and _overlaps(p, paths)]
        rejected = [
            p
            for p in files.list_proposals()
            if p.status == "rejected" and seen.get(p.folder) == "shown" and _overlaps(p, paths)
        ]
        texts = [_describe_proposal(files, p) for p in unseen]
    if rejected:
        files.note_seen([p.folder for p in rejected], "rejected")
        reasons = [f"{p.id}: {p.decision.reason if p.decision else ''}" for p in rejected]
        raise ToolFailed(
            "nothing was proposed: the owner rejected meanwhile what your draft may hold\n"
            + quote_data("\n".join(reasons), "the owner"),
            "Take out of your draft what was rejected, as far as the user did not ask for it; then propose again.",
        )
    if unseen:
        files.note_seen([p.folder for p in unseen])
        raise ToolFailed(
            "nothing was proposed: another proposal for the same files waits, which you had not seen\n"
            + "\n".join(texts),
            "Work what it changes into your draft; then propose again. Yours takes its place, and the card says what "
            "of it is missing.",
        )


def _describe_proposal(files: SessionFiles, proposal: Proposal) -> str:
    diffs = [
        diff_texts(files.read_approved(path), proposal.texts[path], f"approved/{path}", f"{proposal.id}/{path}")
        for path in proposal.paths
    ]
    quoted = quote_data(truncate_middle(f"{proposal.title}\n{''.join(diffs)}", _DIFF_TOKENS), proposal.id)
    return f"{proposal.id} ({', '.join(proposal.paths)}):\n{quoted}"


def _overlaps(proposal: Proposal, paths: Collection[str]) -> bool:
    return any(path in paths for path in proposal.paths)
