"""Changing what moves no money: the payee, tags and note of an entry.

It is written into the entry itself, in a closed period too: nothing is posted, and the figures of each year are of the
payee that was meant. What stood there before is in the history of the decision (``cleared why``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cleared.base.errors import UsageError
from cleared.books.ledger.chains import RESTORES
from cleared.books.ledger.entry import AMENDABLE, AMENDED, Entry, list_plain_tags
from cleared.books.ledger.staged_journal import Books


def list_amendments(
    entry: Entry, counterparty: str | None, tags: Sequence[str] | None, notes: str | None
) -> dict[str, str]:
    """Column → its new text, of those that change; None: as it is. Raises ``UsageError`` for what is no tag."""
    for tag in tags or ():
        if not tag or tag.startswith("@") or ";" in tag:
            raise UsageError("a tag is a word without ; and without @ at its beginning", remedy="Correct --tag.")
    texts = {"counterparty": counterparty, "notes": notes}
    changed = {column: text for column, text in texts.items() if text is not None and text != getattr(entry, column)}
    if tags is not None and list(tags) != list_plain_tags(entry.tags):
        changed["tags"] = ";".join([*tags, *_host_tags(entry.tags)])
    return changed


def stage_amendments(books: Books, entry: Entry, texts: Mapping[str, str]) -> Entry:
    """Stage these texts of an entry, and give it. Its payee becomes that of its whole chain: it is one payment."""
    if not texts:
        return entry
    if "counterparty" in texts:
        for entry_id in books.chains.list_members([entry.entry_id]):
            member = books.find_entry(entry_id)
            if member is not None and member.counterparty != texts["counterparty"]:
                _amend_entry(books, member, {"counterparty": texts["counterparty"]})
    return _amend_entry(books, entry, texts)


def restore_amended(books: Books, before: Mapping[str, Entry], after: Mapping[str, Entry]) -> list[str]:
    """Stage what was there before a decision again; ``before`` and ``after`` it. Returns the ids of what it changed."""
    restored = []
    for entry_id, was in before.items():
        now = after[entry_id]
        columns = [column for column in AMENDABLE if getattr(was, column) != getattr(now, column)]
        if not columns:
            continue
        restored.append(entry_id)
        heirs = _list_restorations(books, entry_id)
        for target in dict.fromkeys((*heirs, *books.chains.list_members([entry_id]))):
            entry = books.find_entry(target)
            if entry is None:
                continue
            wanted = columns if target in heirs else [column for column in columns if column == "counterparty"]
            texts = {c: getattr(was, c) for c in wanted if c != "tags" and getattr(entry, c) == getattr(now, c)}
            if "tags" in wanted:
                own = [tag for tag in _host_tags(entry.tags) if tag != AMENDED or AMENDED in was.tags.split(";")]
                texts["tags"] = ";".join([*list_plain_tags(was.tags), *own])
            books.amend_entry(target, **texts)
    return restored


def describe_changes(was: Entry, now: Entry) -> list[tuple[str, str, str]]:
    """``(column, old, new)`` of what was amended; the host's tags are left out."""
    changes = []
    for column in AMENDABLE:
        old, new = (getattr(each, column) for each in (was, now))
        if column == "tags":
            old, new = (";".join(list_plain_tags(tags)) for tags in (old, new))
        if old != new:
            changes.append((column, old, new))
    return changes


def _amend_entry(books: Books, entry: Entry, texts: Mapping[str, str]) -> Entry:
    tags = texts.get("tags", entry.tags)
    if AMENDED not in tags.split(";"):
        tags = ";".join(filter(None, (tags, AMENDED)))
    return books.amend_entry(entry.entry_id, **{**texts, "tags": tags})


def _list_restorations(books: Books, entry_id: str) -> list[str]:
    """The entry, and those that restored it."""
    found, waiting = list[str](), [entry_id]
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.append(each)
            waiting += books.chains.find_linked(each, RESTORES)
    return found


def _host_tags(tags: str) -> list[str]:
    return [tag for tag in tags.split(";") if tag.startswith("@")]
