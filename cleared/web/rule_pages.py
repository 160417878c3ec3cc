"""Rules: what agents were taught of vendors, with what each row counted for; teaching one more, and taking one out.

Either is a proposal: its card shows what it would change, and approving that makes it live.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from starlette.responses import Response

from cleared.base.errors import PolicyError, UsageError
from cleared.books.queries import read_accounts
from cleared.books.staged_books import ledger_accounts
from cleared.books.teaching.table_listing import TaughtRow, list_taught_rows
from cleared.books.teaching.vendor_teaching import Lesson, propose_removal, propose_vendor
from cleared.changes.decisions.shown_cards import digest_shown
from cleared.review.action_request import ActionResult
from cleared.web.form_answers import read_account, refused
from cleared.web.page import PageRequest
from cleared.web.page_decisions import carry_out

_VERBS: Final = {"teach": "Propose a rule for", "remove": "Propose to take out the rule for"}


def show_rules(page: PageRequest, problem: str = "") -> Response:
    """The rows of all agents' tables, and the form for one more."""
    host = page.site.open_host()
    rows = [(digest_row(each), each.to_data()) for each in page.site.recall("taught rows", list_taught_rows)]
    accounts, banks = read_accounts(host), set(ledger_accounts(host.config).values())
    parents = {each["parent_id"] for each in accounts}
    choices = [
        each
        for each in accounts
        if each["status"] != "closed" and each["account_id"] not in banks and each["account_id"] not in parents
    ]
    names = {each["account_id"]: each["account_name"] for each in accounts}
    return page.render("rules.html", problem=problem, rows=rows, choices=choices, names=names)


def digest_row(taught: TaughtRow) -> str:
    """The digest of a row, as a person is shown it."""
    return digest_shown([taught.agent, taught.row.describe(), taught.row.vendor, str(taught.confidence)])


def change_rules(page: PageRequest) -> Response:
    """Propose a row, or to take one out; its card comes next."""
    host, form, verb = page.site.open_host(), page.form, page.form.get("choice")
    if verb not in _VERBS:
        raise UsageError("the form does not say what to do", remedy="Load the page again.")

    def propose() -> ActionResult:
        if verb == "teach":
            words, account = form.get("words").strip(), read_account(page)
            lesson = propose_vendor(host, words, account, vendor=form.get("vendor").strip())
        else:
            taught = next((each for each in list_taught_rows(host) if digest_row(each) == form.get("row")), None)
            if taught is None:
                raise PolicyError("that rule has changed since it was shown", remedy="Look at it again.")
            lesson = propose_removal(host, taught.row.words, limits=taught.row.limits, agent=taught.agent)
        return ActionResult(lesson.difference, True, offer=lesson)

    def answer(result: ActionResult) -> Response:
        if isinstance(result.offer, Lesson):
            return page.go_to(f"/queue?card={quote(result.offer.proposal.card)}", result.text)
        return refused(show_rules(page, result.text))

    what = f"{_VERBS[verb]} {form.get('words').strip()[:60]}"
    return carry_out(page, propose, None, "/rules", answer, what=what, is_long=True)
