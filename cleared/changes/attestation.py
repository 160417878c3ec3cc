"""Attestations: signed lines that say which run or decision made a commit, for which event, what it emits, and which
cards it opens and resolves. They are signed with the key of this machine's runs.

``logs/attestations-YYYY-MM.jsonl`` has a line for each run and decision. Which event is consumed, and what starts an
agent, is read from these lines, never from commit messages: a rebase, a squash or an amended commit keeps them, and
nobody can make one who can only write to the repository.

Books that were made from others take over what counted in those: see ``changes.taken_over``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import astuple

from cleared.base.clock import format_iso
from cleared.base.errors import WorkspaceError
from cleared.base.file_source import choose_part
from cleared.base.multiset_sum import encode_sum
from cleared.cards import card_events, queue_files
from cleared.cards.card import Card
from cleared.changes.attestation_lines import (
    ORIGIN_TRAILERS,
    Attestation,
    added_lines,
    list_shards,
    name_shard,
    parse_attestation,
    render_attestation,
)
from cleared.changes.change_digests import digest_blobs, digest_lines, list_blob_changes
from cleared.changes.host import Host, current_user
from cleared.changes.record_sources import CommittedSource
from cleared.changes.taken_over import TAKES_OVER, Counting, describe_takeover
from cleared.git import Snapshot
from cleared.git.repository import find_clone_id
from cleared.primitives.context import Context
from cleared.trust.approval_record import WORKSPACE
from cleared.trust.keys import run_key, run_public_key
from cleared.trust.verification import Approvals
from cleared.trust.workspace_pin import find_next_workspace
from cleared.workspace.sealed_files import SealedFiles

CLONE_PREFIX: Final = "clone "
"""Before the mark of a clone, where an attestation names no books: they are not pinned there."""
SUM: Final = "sum"
"""What an attestation calls the sum of the rows that its commit adds, less those that it removes."""


_SIGNED: Final = "signed"


class Signed(Struct, frozen=True):
    """What one key attested: how many runs and decisions, and of the first who and when, of the last what and when."""

    count: int
    user: str
    first: str
    subject: str
    last: str

    def add(self, said: Attestation, user: str) -> Signed:
        """One more."""
        first = (user, said.at) if said.at < self.first else (self.user, self.first)
        last = (said.subject, said.at) if said.at >= self.last else (self.subject, self.last)
        return Signed(self.count + 1, *first, *last)


def find_counting(host: Host, snapshot: Snapshot) -> Counting:
    """Whose attestations count in this workspace, on this machine."""
    own, approvals, mark = run_public_key(host.root), load_approvals(host, snapshot), find_clone_id(snapshot.repo)
    trusted = {key for key in approvals.trust.runs if approvals.trusts_run(key)}
    books = {approvals.workspace, f"{CLONE_PREFIX}{mark}" if mark else ""}
    return Counting(frozenset({own, *trusted} - {""}), frozenset(books - {""}))


def list_signed(host: Host, snapshot: Snapshot) -> dict[str, list[Attestation]]:
    """What each key attested in these books, by key, in the order of the files.

    Empty for books without an id: nobody can be trusted in them yet.
    """
    workspace = workspace_id(host, snapshot)
    signed: dict[str, list[Attestation]] = {}
    for line in added_lines(None, snapshot) if workspace else ():
        said = parse_attestation(line)
        if said is not None and said.workspace == workspace:
            signed.setdefault(said.key, []).append(said)
    return signed


def summarize_signed(host: Host, snapshot: Snapshot) -> dict[str, Signed]:
    """What each key attested in these books, in short. What was read before, sealed on this machine, is not read
    again."""
    workspace, files = workspace_id(host, snapshot), SealedFiles(host.layout.state_dir, b"1")
    data = files.read(_SIGNED)
    known = json.loads(data) if data is not None else {}
    before = None
    if known.get("workspace") == workspace and snapshot.repo.objects.has_commit_tree(known["commit"]):
        before = snapshot.at_commit(known["commit"])
        if any(True for _ in added_lines(snapshot, before)):  # some are there no more
            before = None
    signed = {key: Signed(*row) for key, row in known["signed"].items()} if before is not None else {}
    for line in added_lines(before, snapshot) if workspace else ():
        said = parse_attestation(line)
        if said is not None and said.workspace == workspace:
            user, so_far = str(said.statement.get("user", "")), signed.get(said.key)
            signed[said.key] = so_far.add(said, user) if so_far else Signed(1, user, said.at, said.subject, said.at)
    made = {"workspace": workspace, "commit": snapshot.commit, "signed": {key: astuple(s) for key, s in signed.items()}}
    files.write(_SIGNED, json.dumps(made).encode("ascii"))
    return signed


def workspace_id(host: Host, snapshot: Snapshot) -> str:
    """The id of the books; empty where they have none yet."""
    return load_approvals(host, snapshot).workspace


def _workspace_to_name(host: Host, snapshot: Snapshot) -> str:
    """The id of the books where it is pinned, else this clone.

    Without a pin, a tracked file could claim the id of other books, and what is signed here would count there.
    """
    books = load_approvals(host, snapshot).identity
    return books.id if books.pinned and books.id else f"{CLONE_PREFIX}{find_clone_id(snapshot.repo, make=True)}"


def load_approvals(host: Host, snapshot: Snapshot) -> Approvals:
    """The records of a commit, judged by what this user trusts; without the versions that came with the program."""
    return Approvals(CommittedSource(snapshot), host.root)


def attest_commit(
    host: Host,
    snapshot: Snapshot,
    context: Context,
    subject: str,
    trailers: Sequence[tuple[str, str]],
    changes: Mapping[str, bytes | None],
    events: Sequence[str],
    opened: Mapping[str, str],
    total: int,
) -> dict[str, bytes]:
    """The attestation of a commit that is to be made, as the file that it is added to: path → content.

    ``changes``: all else that the commit changes, path → content. ``events``: the lines of those that it emits;
    ``opened``: card → the line that opens it. ``total``: the sum of the rows that it adds, less those that it removes.

    Raises ``WorkspaceError`` where there is no key to sign with, and none can be made.
    """
    cards = context.cards
    digests: dict[str, Any] = {
        **context.attested,
        "emits": [digest_data(line) for line in events],
        **{
            name: digest_data(value)
            for part in context.parts.values()
            for name, value in part.statements().items()
            if value
        },
        "opens": {
            **{card: digest_data(line) for card, line in opened.items()},
            **{card.id: digest_data(cards.clean(card_events.render_open(card))) for card in cards.accepted},
        },
        "settles": {
            card: _digest_settlement(cards.clean(queue_files.render_resolve(card, *how)))
            for card, how in cards.resolved.items()
        },
    }
    said = {name: value for name, value in digests.items() if value}
    claim = changes.get(WORKSPACE)
    new_id = find_next_workspace(host.root) if claim else ""
    if new_id and claim == f"{new_id}\n".encode("ascii"):
        said[TAKES_OVER] = describe_takeover(host.root, snapshot, find_counting(host, snapshot))
        workspace = new_id
    else:
        workspace = _workspace_to_name(host, snapshot)
    return _attest_changes(host.root, workspace, snapshot, changes, subject, trailers, context.now, said, total)


def attest_first_commit(
    root: Path,
    workspace: str,
    before: Snapshot,
    files: Mapping[str, bytes],
    subject: str,
    trailers: Sequence[tuple[str, str]],
    now: datetime,
    total: int,
) -> dict[str, bytes]:
    """The attestation of the commit that makes a workspace of these ``files``: path → content. So no commit of the
    books is older than what vouches for them. Raises ``WorkspaceError`` as ``attest_commit`` does."""
    return _attest_changes(root, workspace, before, files, subject, trailers, now, {}, total)


def _attest_changes(
    root: Path,
    workspace: str,
    before: Snapshot,
    changes: Mapping[str, bytes | None],
    subject: str,
    trailers: Sequence[tuple[str, str]],
    now: datetime,
    said: Mapping[str, Any],
    total: int,
) -> dict[str, bytes]:
    key = run_key(root, create=True)
    if key is None:
        raise WorkspaceError("this machine has no key for its runs")
    blobs = list_blob_changes(before, changes)
    statement = {
        "workspace": workspace,
        "by": next((value for name, value in trailers if name in ORIGIN_TRAILERS), ""),
        "at": format_iso(now),
        "subject": subject,
        "trailers": dict(trailers),
        "user": current_user(),
        "changes": {"blobs": digest_blobs(blobs), "lines": digest_lines(before, changes, blobs)},
        **({SUM: encode_sum(total)} if total else {}),
        **said,
    }
    path = choose_part(CommittedSource(before), name_shard(format_iso(now)), list_shards(before))
    return {path: (before.read_file(path) or b"") + render_attestation(statement, key)}


def opening_digest(card: Card) -> str:
    """A digest of the line that opens a card."""
    return digest_data(card_events.render_open(card))


def settlement_digest(by: str, resolution: str) -> str:
    """A digest of who resolved a card, and with which answer."""
    return digest_data(json.dumps([by, resolution]))


def _digest_settlement(line: str) -> str:
    data = json.loads(line)
    return settlement_digest(data["by"], data["resolution"])


def digest_data(data: object) -> str:
    """A digest of a text, or of plain data."""
    text = data if isinstance(data, str) else json.dumps(data, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
