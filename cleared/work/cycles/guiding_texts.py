"""The texts that tell a coding engine what to do. A person of this machine knows each before an engine reads it.

Whoever can push writes them, and an engine holds a credential and proposes changes. So those bytes
count that somebody here has said yes to, that were written in this working tree, that came with the program, that were
approved as a proposal, or that the last cycle on this machine has left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from cleared.base.errors import Place, PolicyError, WorkspaceError
from cleared.changes.decisions.shown_cards import digest_shown
from cleared.changes.host import Host
from cleared.git import Repository, Snapshot, blob_id
from cleared.runs.approved_scripts import Scripts
from cleared.trust.approval_record import digest_of
from cleared.trust.shown_digests import is_known, note_shown
from cleared.work.cycles.consensus import CONSENSUS, ConsensusFile
from cleared.work.cycles.cycle_files import cycle_files
from cleared.work.cycles.cycle_prompt import PROMPT_FILE, read_prompt
from cleared.work.cycles.included_texts import IncludedTexts
from cleared.work.loop.steering_files import is_read_by_engines

SHOWN: Final = "guiding texts"
"""As ``changes.decisions.shown_cards`` names them."""


class GuidingText(Struct, frozen=True):
    """One text that nobody here knows yet."""

    path: str
    data: bytes
    included_by: str = ""
    """The text that includes it; empty for one that an engine reads by itself."""

    @property
    def digest(self) -> str:
        return digest_shown([SHOWN, self.path, digest_of(self.data)])


def is_guiding(path: str) -> bool:
    """Whether an engine takes instructions from the file at this path of its clone."""
    return is_read_by_engines(path) or path in (PROMPT_FILE, CONSENSUS)


def read_own_texts(root: Path) -> dict[str, bytes]:
    """What an engine of a cycle is told first, as it lies in the working tree: path → content.

    Raises ``WorkspaceError`` where there is no prompt, or something else in place of one.
    """
    return {PROMPT_FILE: read_prompt(root), CONSENSUS: ConsensusFile(root).read()}


def list_unknown_texts(
    host: Host, commit: str | None = None, *, own: Mapping[str, bytes] | None = None, more: Iterable[str] = ()
) -> list[GuidingText]:
    """The guiding texts of a commit (None: of HEAD) that nobody here knows, and those that these include.

    ``own``: texts that are taken from the working tree instead; ``more``: paths of further ones, such as skills. Raises
    ``PolicyError`` where one includes what lies outside of the repository.
    """
    own, wanted = own or {}, set(more)
    with host.open_for_reading() as repo:
        snapshot = Snapshot(repo, commit or repo.read_head())
        approvals = Scripts(host, snapshot).approvals
        unknown = [
            GuidingText(path, data)
            for path, data in own.items()
            if data and not _is_known_text(host, path, data) and not _is_only_here(repo, data)
        ]
        included = IncludedTexts(snapshot)
        files = [path for path, (mode, _) in snapshot.list_entries().items() if mode.startswith("100")]
        paths = {*(p for p in files if p in wanted or is_guiding(p)), *included.find_linked(is_guiding)} - own.keys()
        texts = {path: snapshot.read_file(path) or b"" for path in paths}
        named = included.include({**texts, **own})
        texts |= {path: snapshot.read_file(path) or b"" for path in named}
        for path, data in texts.items():
            if data and not _is_known_text(host, path, data) and not approvals.verify_version(path, data).may_run:
                unknown.append(GuidingText(path, data, named.get(path, "")))
    return sorted(unknown, key=lambda text: text.path)


def take_text(host: Host, path: str, data: bytes) -> None:
    """From now on this text is known here: a person said yes to it, or a cycle of this machine has left it.

    Raises ``WorkspaceError`` where that cannot be kept.
    """
    note_shown(host.root, GuidingText(path, data).digest, "taken")


def require_known_texts(texts: Iterable[GuidingText], command: str) -> None:
    """Raises ``PolicyError`` where there is one. ``command``: shows it, and asks."""
    for text in texts:
        raise PolicyError(
            "nobody on this machine has said yes to this text, which tells a model what to do; nothing was started",
            place=Place(text.path),
            remedy=f"Read it, and say whether it counts: {command}.",
        )


def digest_texts(texts: Iterable[GuidingText]) -> str:
    """The digest of what is shown before they are taken."""
    return digest_shown([text.digest for text in texts])


def _is_known_text(host: Host, path: str, data: bytes) -> bool:
    shipped = cycle_files().get(path)
    is_shipped = shipped is not None and shipped[0] == data
    return is_shipped or is_known(host.root, GuidingText(path, data).digest, "taken")


def _is_only_here(repo: Repository, data: bytes) -> bool:
    """Whether git has never had this text: somebody has written it in this working tree."""
    try:
        repo.objects.read_object(blob_id(data, repo.hash_name))
    except WorkspaceError:
        return True
    return False
