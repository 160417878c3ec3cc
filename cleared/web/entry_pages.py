"""An entry: all that explains it, and what a person makes of it: another account, several, a note, or voided."""

from __future__ import annotations

from collections.abc import Collection
from decimal import Decimal
from typing import Final
from urllib.parse import quote

from starlette.responses import Response

from cleared.base import money
from cleared.base.errors import PolicyError, UsageError
from cleared.base.short_text import parse_count
from cleared.books import queries
from cleared.books.decisions.entry_correction import Correction, ShownEntry, describe_shown, read_shown_entry
from cleared.books.decisions.entry_voiding import void_entry
from cleared.books.review.book_cards import book_facts_of
from cleared.books.staged_books import ledger_accounts
from cleared.cards.card import Card
from cleared.changes.host import Host
from cleared.review.correction_tests import correct_and_record
from cleared.review.explanation import explain_record
from cleared.web.form_answers import answer_form
from cleared.web.page import PageRequest
from cleared.web.receipt_pages import list_pictures
from cleared.web.split_rows import count_rows, list_choices, list_typed_parts, read_split

_VERBS: Final = {"correct": "Correct", "split": "Split", "void": "Void"}


def show_entry(page: PageRequest, problem: str = "") -> Response:
    """An entry, and all that explains it; where a card asks about it, the way there. ``problem``: why a form of it was
    refused, which is shown again as it was sent."""
    host = page.site.open_host()
    why = explain_record(host, page.part("entry")).data
    facts = book_facts_of(page.site.read_queue())
    entry = facts.entries.get(why["entry"]["entry_id"])
    if entry is None:
        raise PolicyError("the books have changed while they were read", remedy="Load the page again.")
    shown = describe_shown(entry, facts.effective_legs(entry))
    accounts, banks = facts.chart.accounts, set(ledger_accounts(host.config).values())
    choices = list_choices(facts.chart, banks)
    return page.render(
        "entry.html",
        why=why,
        entry=why["entry"],
        accounts={number: account.account_name for number, account in accounts.items()},
        choices=choices,
        shown=shown,
        problem=problem,
        whole=abs(_sum_changeable(shown, banks)),
        parts=list_typed_parts(page),
        rows=count_rows(page),
        card=_find_card(page, shown.entry_id),
        pictures=list_pictures(host, [each["sha256"] for each in why["receipts"] if each["is_here"]]),
    )


def _find_card(page: PageRequest, entry_id: str) -> Card | None:
    return next((card for card in page.site.read_queue().cards.values() if card.record_id == entry_id), None)


def decide_entry(page: PageRequest) -> Response:
    """Correct or void it, as it was shown."""
    form, name, verb = page.form, page.part("entry"), page.form.get("choice")
    if verb not in _VERBS:
        raise UsageError("the form does not say what to do", remedy="Load the page again.")
    host, address = page.site.open_host(), f"/books/entries/{quote(name)}"

    def decide() -> str:
        if verb == "void":
            return _void(host, name, form.get("reason"))
        return _correct(host, name, _read_split(page, host, name) if verb == "split" else _read_correction(page))

    return answer_form(
        page,
        decide,
        show_entry,
        what=f"{_VERBS[verb]} {name}",
        back=address,
        shown={name: form.get("digest")},
        is_long=verb != "void",
    )


def _sum_changeable(shown: ShownEntry, banks: Collection[int]) -> Decimal:
    """What the accounts of an entry that are no bank's have together: positive is a debit."""
    return money.total([leg.amount for leg in shown.legs if leg.account_id not in banks])


def _read_split(page: PageRequest, host: Host, name: str) -> Correction:
    with queries.open_committed_books(host) as (_, _snapshot, books, _bank):
        whole = _sum_changeable(read_shown_entry(books, name), set(ledger_accounts(host.config).values()))
    return Correction(lines=read_split(page, host, whole), note=_read_note(page), mixed=bool(page.form.get("mixed")))


def _read_note(page: PageRequest) -> str | None:
    return page.form.get("note").strip()[:500] or None


def _read_correction(page: PageRequest) -> Correction:
    typed = page.form.get("account")
    account = parse_count(typed) if typed else None
    if typed and account is None:
        raise UsageError(f"{typed[:20]!r} is no account's number", remedy="Choose one of the list.")
    return Correction(account=account, note=_read_note(page))


def _correct(host: Host, name: str, correction: Correction) -> str:
    result = correct_and_record(host, [name], correction)
    if result.agreed:
        return "It takes two: another reviewer decides the same"
    return "; ".join([f"Corrected: {name}", *result.messages])


def _void(host: Host, name: str, reason: str) -> str:
    if not reason.strip():
        raise UsageError("voiding needs a reason", remedy="Say why: whoever asks later reads it.")
    _, reversal, _ = void_entry(host, name, " ".join(reason.split())[:500])
    return f"Voided: {name}, taken back by {reversal}"
