"""An entry: all that explains it, and what a person makes of it: another account, a note, or voided."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from starlette.responses import Response

from cleared.base.errors import UsageError
from cleared.base.short_text import parse_count
from cleared.books import queries
from cleared.books.decisions.entry_correction import Correction, read_shown_entry
from cleared.books.decisions.entry_voiding import void_entry
from cleared.books.staged_books import ledger_accounts
from cleared.cards.card import Card
from cleared.changes.host import Host
from cleared.review.action_request import ActionResult
from cleared.review.correction_tests import correct_and_record
from cleared.review.explanation import explain_record
from cleared.web.page import PageRequest
from cleared.web.page_decisions import carry_out
from cleared.web.receipt_pages import list_pictures

_VERBS: Final = {"correct": "Correct", "void": "Void"}


def show_entry(page: PageRequest) -> Response:
    """An entry, and all that explains it; where a card asks about it, the way there."""
    host = page.site.open_host()
    why = explain_record(host, page.part("entry")).data
    with queries.open_committed_books(host) as (_, _snapshot, books, _bank):
        shown = read_shown_entry(books, why["entry"]["entry_id"])
        accounts = books.chart.accounts
        left_out = {*books.chart.parents, *ledger_accounts(host.config).values()}
    choices = [each for each in accounts.values() if each.status != "closed" and each.account_id not in left_out]
    return page.render(
        "entry.html",
        why=why,
        entry=why["entry"],
        accounts={number: account.account_name for number, account in accounts.items()},
        choices=choices,
        shown=shown,
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

    def decide() -> ActionResult:
        return _void(host, name, form.get("reason")) if verb == "void" else _correct(host, name, _read_correction(page))

    def answer(result: ActionResult) -> Response:
        return page.go_to(address, result.text if result.ok else f"Not done: {result.text}", ok=result.ok)

    return carry_out(
        page,
        decide,
        {name: form.get("digest")},
        address,
        answer,
        what=f"{_VERBS[verb]} {name}",
        is_long=verb == "correct",
    )


def _read_correction(page: PageRequest) -> Correction:
    typed = page.form.get("account")
    account = parse_count(typed) if typed else None
    if typed and account is None:
        raise UsageError(f"{typed[:20]!r} is no account's number", remedy="Choose one of the list.")
    return Correction(account=account, note=page.form.get("note").strip()[:500] or None)


def _correct(host: Host, name: str, correction: Correction) -> ActionResult:
    result = correct_and_record(host, [name], correction)
    if result.agreed:
        return ActionResult("It takes two: another reviewer decides the same", True)
    return ActionResult("; ".join([f"Corrected: {name}", *result.messages]), True)


def _void(host: Host, name: str, reason: str) -> ActionResult:
    if not reason.strip():
        raise UsageError("voiding needs a reason", remedy="Say why: whoever asks later reads it.")
    _, reversal, _ = void_entry(host, name, " ".join(reason.split())[:500])
    return ActionResult(f"Voided: {name}, taken back by {reversal}", True)
