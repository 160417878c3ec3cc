"""Attestations: signed lines that say which run or decision made a commit, for which event, what it emits, and which
cards it opens and resolves. They are signed with the key of this machine's runs.

``logs/attestations-YYYY-MM.jsonl`` has a line for each run and decision. Which event is consumed, and what starts an
agent, is read from these lines, never from commit messages: a rebase, a squash or an amended commit keeps them, and
nobody can make one who can only write to the repository.

Books that were made from others take over what counted in those: the attestation of ``cleared trust --new-books`` names
the files with their lines by git's ids, whose lines counted, and for which books. Nothing that is signed for the old
books afterwards counts in the new ones.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cleared.base.clock import format_iso
from cleared.base.errors import WorkspaceError
from cleared.cards import queue_files
from cleared.cards.kinds import FAILED_RUN
from cleared.changes.book_sources import CommittedSource
from cleared.changes.change_digests import digest_blobs, digest_lines, list_blob_changes
from cleared.changes.host import Host, current_user
from cleared.git.clone_mark import find_clone_id
from cleared.git.object_reader import is_oid
from cleared.trust.approval_record import WORKSPACE
from cleared.trust.keys import run_key, run_public_key, verify_signature
from cleared.trust.verification import Approvals
from cleared.trust.workspace_pin import find_next_workspace
from cleared.workspace.location import Layout

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from cleared.cards.card import Card
    from cleared.git import Snapshot
    from cleared.primitives.context import Context

ORIGIN_TRAILERS: Final = ("Run", "Decision", "Proposed")
"""The trailers of a commit that calls itself a run, a decision or a proposal: only an attestation shows that it is."""
_NAME: Final = "attestations-"
_DOMAIN: Final = b"cleared attestation 1\n"
"""Part of what is signed, so that no signature of another kind can be taken for an attestation's."""
_TAKES_OVER: Final = "takes_over"
"""What the attestation of new books says of those that they were made from."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Attestation:
    """One line with a valid signature of ``key``. ``trusted_signers`` says whether that key counts."""

    key: str
    workspace: str
    made_by: str
    """The id of the run or decision."""
    at: str
    subject: str
    trailers: Mapping[str, str]
    statement: Mapping[str, Any]
    """All that is signed; ``emits``, ``opens``, ``settles`` and ``imports`` are digests of data that lies elsewhere,
    ``changes`` those of what the commit changes."""


def list_shards(layout: Layout, snapshot: Snapshot) -> dict[str, str]:
    """The files of a commit that hold attestations, oldest first: path → blob."""
    entries = snapshot.list_folder(layout.logs_dir).items()
    return {
        f"{layout.logs_dir}/{name}": entry.oid
        for name, entry in sorted(entries)
        if name.startswith(_NAME) and name.endswith(".jsonl") and entry.is_file
    }


def added_lines(layout: Layout, before: Snapshot | None, after: Snapshot) -> Iterator[bytes]:
    """The lines that are in ``after`` and not in ``before``."""
    for path, oid in list_shards(layout, after).items():
        old = b""
        if before is not None:
            if before.find_blob_id(path) == oid:
                continue
            old = before.read_file(path) or b""
        new = after.read_file(path) or b""
        if new.startswith(old):
            yield from new[len(old) :].splitlines()
        else:
            old_lines = set(old.splitlines())
            yield from (line for line in new.splitlines() if line not in old_lines)


def new_lines(layout: Layout, before: Sequence[Snapshot], after: Snapshot) -> list[bytes]:
    """The lines that are in ``after`` and in none of the commits ``before``; a repeated line is not new."""
    if not before:
        return list(added_lines(layout, None, after))
    first, *others = before
    lines = list(added_lines(layout, first, after))
    for other in others:
        missing = set(added_lines(layout, other, after))
        lines = [line for line in lines if line in missing]
    for path, oid in list_shards(layout, after).items() if lines else ():
        for each in before:
            if each.find_blob_id(path) != oid:
                earlier = each.read_file(path) or b""
                lines = [line for line in lines if line not in earlier]
    return lines


def parse_attestation(line: bytes) -> Attestation | None:
    """The attestation in a line; ``None`` where its signature is not valid."""
    try:
        data = json.loads(line)
        statement, key, signature = data["says"], data["key"], data["signature"]
        attestation = Attestation(
            key,
            statement["workspace"],
            statement["by"],
            statement["at"],
            statement["subject"],
            statement["trailers"],
            statement,
        )
        texts = (
            attestation.workspace,
            attestation.made_by,
            attestation.at,
            attestation.subject,
            signature,
            key,
            *attestation.trailers.values(),
        )
        if not all(isinstance(text, str) for text in texts) or not verify_signature(
            key, signature, _signed_payload(statement)
        ):
            return None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return attestation


def trusted_signers(host: Host, snapshot: Snapshot) -> frozenset[str]:
    """The keys whose attestations count in this workspace, on this machine."""
    own, approvals = run_public_key(host.root), _load_approvals(host, snapshot)
    trusted = {key for key in approvals.trust.runs if approvals.trusts_run(key)}
    return frozenset({own, *trusted} - {""})


def list_signing_keys(host: Host, snapshot: Snapshot) -> Iterator[tuple[str, str, str]]:
    """Each key that signed an attestation in these books: the key, the user of its first line, and when that was.

    Empty for books without an id: nobody can be trusted in them yet.
    """
    workspace, listed = workspace_id(host, snapshot), set[str]()
    for line in added_lines(host.layout, None, snapshot) if workspace else ():
        with suppress(ValueError, KeyError, TypeError, RecursionError):
            key = json.loads(line)["key"]
            if key not in listed and (signed := parse_attestation(line)) is not None and signed.workspace == workspace:
                listed.add(key)
                yield signed.key, str(signed.statement.get("user", "")), signed.at


def workspace_id(host: Host, snapshot: Snapshot) -> str:
    """The id of the books; empty where they have none yet."""
    return _load_approvals(host, snapshot).workspace


def accepted_workspaces(host: Host, snapshot: Snapshot) -> frozenset[str]:
    """The names of books in attestations that count here: the id of the books, and this clone."""
    mark = find_clone_id(snapshot.repo)
    return frozenset({workspace_id(host, snapshot), f"clone {mark}" if mark else ""} - {""})


def list_counting(
    snapshot: Snapshot, lines: Iterable[bytes], keys: Container[str], workspaces: Container[str]
) -> Iterator[tuple[bytes, Attestation]]:
    """The lines that one of ``keys`` signed for one of ``workspaces``, each with what it says; and after one that takes
    over those of other books, these, as they counted there then."""
    for line in lines:
        said = parse_attestation(line)
        if said is not None and said.key in keys and said.workspace in workspaces:
            yield line, said
            yield from list_taken_over(snapshot, said)


def list_taken_over(snapshot: Snapshot, said: Attestation) -> Iterator[tuple[bytes, Attestation]]:
    """The lines of other books that an attestation takes over, each with what it says. None where git does not have
    their files here, as in a shallow clone."""
    taken = said.statement.get(_TAKES_OVER)
    if not isinstance(taken, dict):
        return
    files, keys, workspaces = ({*map(str, taken.get(name) or ())} for name in ("files", "keys", "workspaces"))
    for blob in sorted(filter(is_oid, files)):
        with suppress(WorkspaceError):
            (data,) = snapshot.read_blobs([blob])
            yield from list_counting(snapshot, data.splitlines(), keys, workspaces)


def find_takeovers(layout: Layout, snapshot: Snapshot) -> list[Attestation]:
    """The attestations of a commit that take over others, whoever signed them."""
    lines = (line for line in added_lines(layout, None, snapshot) if _TAKES_OVER.encode("ascii") in line)
    said = filter(None, map(parse_attestation, lines))
    return [each for each in said if _TAKES_OVER in each.statement]


def _describe_takeover(host: Host, snapshot: Snapshot) -> dict[str, list[str]]:
    """All that counts in these books now, for others that are made from them."""
    return {
        "workspaces": sorted(accepted_workspaces(host, snapshot)),
        "keys": sorted(trusted_signers(host, snapshot)),
        "files": list(list_shards(host.layout, snapshot).values()),
    }


def _workspace_to_name(host: Host, snapshot: Snapshot) -> str:
    """The id of the books where it is pinned, else this clone.

    Without a pin, a tracked file could claim the id of other books, and what is signed here would count there.
    """
    books = _load_approvals(host, snapshot).identity
    return books.id if books.pinned and books.id else f"clone {find_clone_id(snapshot.repo, make=True)}"


def is_of_this_clone_alone(host: Host, snapshot: Snapshot) -> bool:
    """Whether what is attested now counts in no other clone of the books: they have an id, and this clone no pin."""
    books = _load_approvals(host, snapshot).identity
    return bool(books.id) and not books.pinned


def _load_approvals(host: Host, snapshot: Snapshot) -> Approvals:
    return Approvals(CommittedSource(snapshot), host.root, {})


def attest_commit(
    host: Host,
    snapshot: Snapshot,
    context: Context,
    subject: str,
    trailers: Sequence[tuple[str, str]],
    changes: Mapping[str, bytes | None],
    events: Sequence[str],
) -> dict[str, bytes]:
    """The attestation of a commit that is to be made, as the file that it is added to: path → content.

    ``changes``: all else that the commit changes, path → content. ``events``: the lines that it adds to
    ``logs/events.jsonl``.

    Raises ``WorkspaceError`` where there is no key to sign with, and none can be made.
    """
    cards = context.cards
    digests: dict[str, Any] = {
        "emits": [digest_data(line) for line in events],
        **{
            name: digest_data(value)
            for part in context.parts.values()
            for name, value in part.statements().items()
            if value
        },
        "opens": {
            card.id: digest_data(cards.clean(queue_files.render_open(card)))
            for card in cards.added.values()
            if card.kind == FAILED_RUN.name  # it names the event for which its agent is to be run again
        },
        "settles": {
            card: _digest_settlement(cards.clean(queue_files.render_resolve(card, *how)))
            for card, how in cards.resolved.items()
        },
    }
    said = {name: value for name, value in digests.items() if value}
    new_id = find_next_workspace(host.root)
    if new_id and changes.get(WORKSPACE) == f"{new_id}\n".encode("ascii"):
        said[_TAKES_OVER], workspace = _describe_takeover(host, snapshot), new_id
    else:
        workspace = _workspace_to_name(host, snapshot)
    return _attest_changes(host.root, workspace, snapshot, changes, subject, trailers, context.now, said)


def attest_first_commit(
    root: Path,
    workspace: str,
    before: Snapshot,
    files: Mapping[str, bytes],
    subject: str,
    trailers: Sequence[tuple[str, str]],
    now: datetime,
) -> dict[str, bytes]:
    """The attestation of the commit that makes a workspace of these ``files``: path → content. So no commit of the
    books is older than what vouches for them. Raises ``WorkspaceError`` as ``attest_commit`` does."""
    return _attest_changes(root, workspace, before, files, subject, trailers, now, {})


def _attest_changes(
    root: Path,
    workspace: str,
    before: Snapshot,
    changes: Mapping[str, bytes | None],
    subject: str,
    trailers: Sequence[tuple[str, str]],
    now: datetime,
    said: Mapping[str, Any],
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
        **said,
    }
    line = {"says": statement, "key": key.public, "signature": key.sign(_signed_payload(statement))}
    path = f"{Layout.logs_dir}/{_NAME}{format_iso(now)[:7]}.jsonl"
    text = json.dumps(line, separators=(",", ":")) + "\n"
    return {path: (before.read_file(path) or b"") + text.encode("ascii")}


def vouches_for(attestation: Mapping[str, Any], card: Card) -> bool:
    """Whether ``attestation`` (id of a card → digest) has the card, just as it was opened."""
    return attestation.get(card.id) == digest_data(queue_files.render_open(card))


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


def _signed_payload(statement: Mapping[str, Any]) -> bytes:
    return _DOMAIN + json.dumps(statement, sort_keys=True, separators=(",", ":")).encode("ascii")
