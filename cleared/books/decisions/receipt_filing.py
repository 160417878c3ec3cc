"""Keeping receipts, and linking them to entries: each is one commit, and no row of the record is ever removed.

A file of ``receipts/inbox/`` leaves it only when the commit that keeps it is made.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from msgspec import Struct, structs

from cleared.base.clock import format_iso
from cleared.base.errors import ClearedError, Place, PolicyError, UsageError, WorkspaceError
from cleared.base.safe_files import read_stable, write_new
from cleared.base.safe_names import mend_name
from cleared.books.card_kinds import RECEIPT
from cleared.books.decisions import book_subjects
from cleared.books.decisions.receipt_proposals import propose_links, read_receipts
from cleared.books.importing.receipt_damage import refuse_damaged
from cleared.books.importing.receipt_text import read_receipt
from cleared.books.ledger.chains import RESTORES, list_links
from cleared.books.ledger.entry import Entry
from cleared.books.ledger.receipts import (
    INBOX,
    KEPT,
    LINKED,
    REMOVED,
    UNLINKED,
    Payment,
    Receipt,
    append_receipt_rows,
    find_receipt,
    list_inbox,
    parse_receipts,
    place_receipt,
)
from cleared.books.staged_books import books_of
from cleared.cards.card import Card
from cleared.cards.kinds import BAD_FILE
from cleared.cards.refused_files import list_card_files, stage_refusals
from cleared.changes import commit_messages
from cleared.changes.decisions.decision_context import Decision, DecisionContext, commit_decision, require_commit
from cleared.changes.host import Host
from cleared.git import LocalMove, Snapshot
from cleared.primitives.context import Context
from cleared.trust.person_only import refuse_in_job
from cleared.workspace.watched_names import escape_name, refuse_brought

MAX_FILES: Final = 200
"""Of one commit; the others are taken by the next."""
_MAX_BYTES_AT_ONCE: Final = 256 << 20


class FiledReceipt(Struct, frozen=True):
    """One file as it was taken. ``is_new``: it was not kept before."""

    receipt: Receipt
    is_new: bool
    proposed: Payment | None = None
    """The payment that it was proposed for, on a card."""
    likely: tuple[Payment, ...] = ()
    """Several payments that fit it as well: a person has to say which."""
    entries: tuple[str, ...] = ()
    """The entries that it proves."""


class FiledReceipts(Struct):
    """What was taken, and what was not: (name, why)."""

    filed: list[FiledReceipt] = []
    refused: list[tuple[str, str]] = []
    is_rest: bool = False
    """Whether there are more files than are taken at once."""
    commit: str = ""


@dataclass(frozen=True, slots=True)
class _FoundFile:
    name: str
    data: bytes = field(repr=False)
    path: str | None = None
    """Where it lies in the inbox, relative to the workspace."""

    @property
    def inbox_name(self) -> str:
        """What it is called in the inbox; empty where it lies elsewhere."""
        return (self.path or "").rpartition("/")[2]

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


def file_receipt(host: Host, path: Path, entry_id: str | None = None) -> FiledReceipts:
    """Keep one file, and link it to an entry where one is named. The file itself stays where it is, unless it lies in
    the inbox.

    Raises ``UsageError`` where there is no such entry, ``WorkspaceError`` where the file cannot be read or is too
    large, ``PolicyError`` where git brought it; inside a job.
    """
    refuse_in_job()
    # The user names the file, so a link is followed; in the inbox it is not.
    in_inbox = path.parent.resolve() == (host.root / INBOX).resolve()
    found = _read_file(host, path if in_inbox else path.resolve(), f"{INBOX}/{path.name}" if in_inbox else None)
    if found.path is None and host.config.receipts.keep == "local":
        # It stays on this machine: it goes through the inbox, so that it moves with the commit.
        found = replace(found, path=copy_to_inbox(host.root, found.name, found.data))
    return _file_all(host, [found], FiledReceipts(), entry_id, by=None, is_named=True)


def file_inbox(host: Host, *, by: str | None = None) -> FiledReceipts:
    """Keep all files of the inbox. One that cannot be read, is too large, or came with git, stays there and is named.

    ``by``: what does it where no person does. Raises as ``file_receipt``.
    """
    refuse_in_job()
    result, found, size = FiledReceipts(), list[_FoundFile](), 0
    for path in list_inbox(host.root):
        try:
            one = _read_file(host, path, f"{INBOX}/{path.name}")
        except ClearedError as error:
            result.refused.append((path.name, str(error)))
            continue
        size += len(one.data)
        if len(found) == MAX_FILES or size > _MAX_BYTES_AT_ONCE:
            result.is_rest = True
            break
        found.append(one)
    return _file_all(host, found, result, None, by=by) if found else result


def _read_file(host: Host, path: Path, inbox_path: str | None) -> _FoundFile:
    shown = inbox_path or path.name
    data, _ = read_stable(path, host.config.receipts.max_bytes, shown=shown)
    name = "".join(c if c.isprintable() else "?" for c in path.name.encode("utf-8", "replace").decode("utf-8"))
    refuse_damaged(name, data, shown)
    return _FoundFile(name[:200], data, inbox_path)


def copy_to_inbox(root: Path, name: str, data: bytes) -> str:
    """Put a file into the inbox, under its name where that is free there; where it lies, relative to the workspace.

    Raises ``WorkspaceError`` where it is empty or damaged, and where the inbox is a link to elsewhere.
    """
    refuse_damaged(name, data, name)
    folder = root / INBOX
    if folder.is_symlink() or folder.parent.is_symlink():
        raise WorkspaceError("the inbox of receipts is a link", place=Place(INBOX), remedy="Make it a folder.")
    folder.mkdir(parents=True, exist_ok=True)
    plain = mend_name(name, "receipt")
    for chosen in (plain, f"{hashlib.sha256(data).hexdigest()[:16]}-{plain}"):
        if write_new(folder / chosen, data):
            break
    return f"{INBOX}/{chosen}"


def _file_all(
    host: Host,
    found: Sequence[_FoundFile],
    result: FiledReceipts,
    entry_id: str | None,
    *,
    by: str | None,
    is_named: bool = False,
) -> FiledReceipts:
    confine = host.config.sandbox.confine
    facts = {each.digest: read_receipt(each.name, each.data, confine) for each in found}
    filed: list[FiledReceipt] = []
    refused: list[tuple[str, str]] = []

    def stage_filing(decision_context: DecisionContext) -> Decision | None:
        context = decision_context.context
        entry = _require_entry(context, entry_id) if entry_id is not None else None
        receipts, rows, moves = read_receipts(context), list[str](), list[LocalMove]()
        files: dict[str, bytes | None] = {}
        at, who = format_iso(context.now), decision_context.by
        brought = _find_brought(decision_context, found)
        if is_named and brought:
            raise next(iter(brought.values()))
        refused.extend((name, str(error)) for name, error in brought.items())
        _stage_brought(decision_context, brought, found)
        for each in (each for each in found if each.inbox_name not in brought):
            known = receipts.get(each.digest)
            amounts, days = facts[each.digest]
            receipt = known or Receipt(
                each.digest, place_receipt(each.digest, each.name), each.name, len(each.data), who, at, amounts, days
            )
            if known is None:
                rows.append(receipt.format_row(KEPT, who, at))
            if entry is not None and not receipt.proves(entry):
                receipt = receipt.add_link(entry)
                rows.append(receipt.format_row(LINKED, who, at, entry.entry_id))
                _settle_cards(decision_context, receipt, entry.entry_id, "link")
            receipts[each.digest] = receipt
            files |= {receipt.file: each.data} if _is_in_git(host, decision_context.snapshot, receipt.file) else {}
            moves += _plan_move(host, decision_context.snapshot, each, receipt, is_known=known is not None)
            proved = tuple(e.entry_id for e in receipt.list_proved(books_of(context).books.find_entry))
            filed.append(FiledReceipt(receipt, known is None, entries=proved))
        filed[:] = list(_propose_all(context, filed, receipts)) if by is not None or entry_id is None else filed
        if not rows and not moves and not context.cards.added:
            return None
        if rows:
            files |= stage_rows(context, rows)
        if filed:
            names = {each.receipt.sha256: each.receipt.name for each in filed}  # the inbox may have one twice
            subject = book_subjects.receipts_kept([*names.values()], entry_id)
        else:
            subject = commit_messages.cards_opened([card.title for card in context.cards.added.values()])
        return Decision(subject, files, local_moves=tuple(moves), subject=("receipt add", *sorted(facts)))

    result.commit = commit_decision(host, "receipt add", stage_filing, by=by, collects=[filed, refused]) or ""
    result.filed, result.refused = filed, [*result.refused, *refused]
    return result


def _find_brought(decision_context: DecisionContext, found: Iterable[_FoundFile]) -> dict[str, PolicyError]:
    """The files of the inbox that git brought: name → the refusal."""
    brought = {}
    for each in found:
        try:
            if each.path is not None:
                refuse_brought(each.path, each.inbox_name, decision_context.snapshot.has_file)
        except PolicyError as error:
            brought[each.inbox_name] = error
    return brought


def _stage_brought(
    decision_context: DecisionContext, brought: Mapping[str, PolicyError], found: Iterable[_FoundFile]
) -> None:
    """Stage the cards of the files that git brought, and settle those of files that are kept now."""
    host, context = decision_context.host, decision_context.context
    stage_refusals(brought, host.root / INBOX, INBOX, host.config.receipts.max_bytes, context.stage_card, "kept")
    kept = {f"{INBOX}/{escape_name(each.inbox_name)}" for each in found if each.inbox_name not in brought}
    for card in context.cards.open_cards(BAD_FILE.name):
        files = list_card_files(card)
        if files and kept.issuperset(files):
            context.cards.resolve_card(card.id, format_iso(context.now), decision_context.by, "it was kept")


def _is_in_git(host: Host, snapshot: Snapshot, file: str) -> bool:
    return host.config.receipts.keep == "git" or snapshot.find_entry(file) is not None


def _plan_move(
    host: Host, snapshot: Snapshot, found: _FoundFile, receipt: Receipt, *, is_known: bool
) -> list[LocalMove]:
    if found.path is None or (is_known and not os.path.lexists(host.root / found.path)):
        return []  # the commit of a command that was killed, or another command, has taken it since it was read
    is_there = _is_in_git(host, snapshot, receipt.file) or (host.root / receipt.file).exists()
    return [LocalMove(found.path, None if is_there else receipt.file, found.data)]


def _propose_all(
    context: Context, filed: Iterable[FiledReceipt], receipts: Mapping[str, Receipt]
) -> Iterator[FiledReceipt]:
    filed = list(filed)
    likely = propose_links(context, [each.receipt for each in filed], receipts)
    for each in filed:
        fits = likely.get(each.receipt.sha256, [])
        yield structs.replace(each, proposed=fits[0]) if len(fits) == 1 else structs.replace(each, likely=tuple(fits))


def stage_rows(context: Context, rows: Iterable[str], before: bytes | None = None) -> dict[str, bytes | None]:
    """The record with these rows; ``before``: its content where this decision has changed it already."""
    path = books_of(context).bank.paths.receipts
    return {path: append_receipt_rows(books_of(context).bank.source.read(path) if before is None else before, rows)}


def _require_entry(context: Context, entry_id: str) -> Entry:
    entry = books_of(context).books.find_entry(entry_id)
    if entry is None or entry.entry_id != entry_id:
        raise UsageError(f"there is no entry {entry_id!r}", remedy="cleared search and cleared journal list show ids.")
    if entry.status == "voided":
        raise UsageError(f"{entry_id} is voided: it needs no receipt", remedy="Name the entry that stands.")
    return entry


def link_receipt(host: Host, name: str, entry_id: str) -> str | None:
    """Link a kept receipt to an entry; the commit, None where it is linked already.

    Raises ``UsageError`` where there is no such receipt or entry; inside a job.
    """
    refuse_in_job()

    def stage_link(decision_context: DecisionContext) -> Decision | None:
        context = decision_context.context
        entry = _require_entry(context, entry_id)
        receipt = find_receipt(read_receipts(context), name)
        if receipt.proves(entry):
            return None
        row = receipt.add_link(entry).format_row(LINKED, decision_context.by, format_iso(context.now), entry_id)
        _settle_cards(decision_context, receipt, entry_id, "link")
        return Decision(book_subjects.receipt_linked(receipt.name, entry_id), stage_rows(context, [row]))

    return commit_decision(host, "receipt link", stage_link, collects=[])


def link_proposed(
    decision_context: DecisionContext, card: Card, files: Mapping[str, bytes | None]
) -> dict[str, bytes | None]:
    """The record with the link that a card proposes. ``files``: what the decision has changed already. Raises
    ``UsageError`` where receipt or entry are gone."""
    context, path = decision_context.context, books_of(decision_context.context).bank.paths.receipts
    before = files.get(path)
    receipts = parse_receipts(before, path) if before is not None else read_receipts(context)
    receipt, entry_id = receipts.get(str(card.details.get("receipt"))), str(card.details.get("entry"))
    if receipt is None:
        raise UsageError(f"the receipt of {card.id} is not kept any more", remedy="Answer: different.")
    entry = _require_entry(context, entry_id)
    if receipt.proves(entry):
        return {}
    row = receipt.add_link(entry).format_row(LINKED, decision_context.by, format_iso(context.now), entry_id)
    return stage_rows(context, [row], before)


def unlink_receipt(host: Host, name: str, entry_id: str) -> str:
    """Take back that a receipt proves an entry; the commit. Raises ``UsageError`` where it does not; inside a job."""
    refuse_in_job()

    def stage_unlink(decision_context: DecisionContext) -> Decision:
        context = decision_context.context
        receipt = find_receipt(read_receipts(context), name)
        if entry_id not in receipt.links:
            linked = ", ".join(receipt.links) or "none"
            raise UsageError(f"{receipt.name!r} is not linked to {entry_id}", remedy=f"Its entries: {linked}.")
        row = receipt.format_row(UNLINKED, decision_context.by, format_iso(context.now), entry_id)
        return Decision(book_subjects.receipt_unlinked(receipt.name, entry_id), stage_rows(context, [row]))

    return require_commit(commit_decision(host, "receipt unlink", stage_unlink, collects=[]))


def remove_receipt(host: Host, name: str) -> str:
    """Keep a receipt no more: the file leaves the workspace, and stays in git's history where it was; the commit."""
    refuse_in_job()

    def stage_removal(decision_context: DecisionContext) -> Decision:
        context = decision_context.context
        receipt = find_receipt(read_receipts(context), name)
        row = receipt.format_row(REMOVED, decision_context.by, format_iso(context.now))
        files, moves = stage_rows(context, [row]), list[LocalMove]()
        if decision_context.snapshot.find_entry(receipt.file) is not None:
            files[receipt.file] = None
        elif (host.root / receipt.file).is_file():
            data, _ = read_stable(host.root / receipt.file, host.config.receipts.max_bytes, shown=receipt.file)
            moves = [LocalMove(receipt.file, None, data)]
        _settle_cards(decision_context, receipt, None, "different")
        return Decision(book_subjects.receipt_removed(receipt.name), files, local_moves=tuple(moves))

    return require_commit(commit_decision(host, "receipt remove", stage_removal, collects=[]))


def take_back_links(
    decision_context: DecisionContext, before: Snapshot, made: Snapshot, restored: Mapping[str, str]
) -> dict[str, bytes | None]:
    """The record without the links that a commit has made, for who takes that commit back; what comes back under
    another id (``restored``) keeps its receipts."""
    context, path = decision_context.context, books_of(decision_context.context).bank.paths.receipts
    old, new = (parse_receipts(each.read_file(path), path) for each in (before, made))
    had, has = (
        {(sha, *link) for sha, receipt in each.items() for link in receipt.links.items()} for each in (old, new)
    )
    links = {(sha, entry_id) for sha, entry_id, _ in has - had}
    at, by, rows, books = format_iso(context.now), decision_context.by, [], books_of(context).books
    for sha, receipt in read_receipts(context).items():
        for entry_id in receipt.links:
            if not links.isdisjoint((sha, each) for each in _trace_restored(context, entry_id)):
                rows.append(receipt.format_row(UNLINKED, by, at, entry_id))
            elif entry_id in restored and receipt.proves(books.get_entry(entry_id)):
                again = books.get_entry(restored[entry_id])
                rows.append(receipt.add_link(again).format_row(LINKED, by, at, again.entry_id))
    return stage_rows(context, rows) if rows else {}


def _trace_restored(context: Context, entry_id: str) -> list[str]:
    """The entry, and those that it came back for, newest first."""
    found = [entry_id]
    while (entry := books_of(context).books.find_entry(found[-1])) is not None:
        before = [target for mark, target in list_links(entry.tags) if mark == RESTORES and target not in found]
        if not before:
            break
        found += before[:1]
    return found


def _settle_cards(decision_context: DecisionContext, receipt: Receipt, entry_id: str | None, answer: str) -> None:
    """Settle the open cards about a receipt: the one about the entry with ``answer``, others as different."""
    context = decision_context.context
    for card in context.cards.open_cards(RECEIPT.name):
        if card.details.get("receipt") == receipt.sha256:
            same = entry_id is None or card.details.get("entry") == entry_id
            resolution = answer if same else "different"
            context.cards.resolve_card(card.id, format_iso(context.now), decision_context.by, resolution)
