"""The queue: a card at a time, decided with a thumb, a key or a click."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, urlencode

from msgspec import Struct
from msgspec.structs import replace
from starlette.responses import Response

from cleared.base import money
from cleared.base.errors import PolicyError, UsageError
from cleared.base.short_text import parse_count
from cleared.books.card_kinds import RECEIPT
from cleared.books.decisions.entry_correction import Correction
from cleared.books.review.account_choice import amount_to_split, match_accounts, parse_split
from cleared.books.review.book_cards import book_facts_of
from cleared.books.review.similar_entries import list_possible_duplicates
from cleared.books.teaching.vendor_teaching import Lesson
from cleared.cards.kinds import PROPOSAL
from cleared.review import card_actions, card_decisions
from cleared.review.action_request import UNDO, ActionRequest, ActionResult
from cleared.review.card_facts import CardChoice
from cleared.review.card_groups import card_group
from cleared.review.card_view import (
    CardView,
    card_choices,
    cards_summary,
    digest_shown_cards,
    group_suggestion,
    show_card,
)
from cleared.review.queue_snapshot import QueueSnapshot, number_to_type, read_proposal_now
from cleared.review.reviewer_list import list_reviewers
from cleared.review.source_files import FileView, bank_file
from cleared.web.forms import Form
from cleared.web.page import PageRequest
from cleared.web.page_decisions import Answer, carry_out, may_change_what_runs
from cleared.web.receipt_pages import list_pictures
from cleared.web.split_rows import count_rows, list_choices, list_typed_parts, read_split, write_parts

_LIVE_VERB: Final = "approve"
"""The verb that changes what runs: the passphrase of the key is asked for each time, or the passkey."""
_RUN_VERB: Final = "retry"
"""The verb that starts a run, which comes before any decision and cannot wait for a signature."""
_TEACHES: Final = "always"
"""The verb that decides and proposes: what it proposes decides nothing before its card is approved."""
_REASONS: Final = {
    "personal": "personal",
    "duplicate": "the same money was booked before",
    "suspense": "not clear",
}
"""Outcome of a bank line → the reason, where none was typed."""
_VERBS: Final = {
    "confirm": "Approve",
    "correct": "Correct",
    "suggested": "Take the suggestion",
    "always": "Always",
    "reject": "Reject",
    "agree": "Agree",
    "answer": "Answer",
    "approve": "Approve, it becomes live",
    "decline": "Reject",
    "retry": "Run again",
}
"""What is to be signed, in words."""
_ACCOUNTS_SHOWN: Final = 8
_LIST_SHOWN: Final = 12
_GROUP_SHOWN: Final = 250
"""Cards of a group that are shown, and decided, at once; the others come next."""


class ShownCard(Struct, frozen=True):
    """A card as the page shows it, with the digests that a decision about it sends back."""

    view: CardView
    digests: Mapping[str, str]
    answers: tuple[CardChoice, ...]
    actions: Mapping[str, CardChoice]
    """Verb → choice."""
    posts_line: bool
    is_restricted: bool
    """Whether approving it takes the passphrase of a key that has none."""
    receipt: str
    """The digest of the receipt that it is about; else empty."""
    has_picture: bool
    """Whether a browser shows that receipt as a picture."""
    number: str
    """What a person types to approve it, where no dry run showed all that it may do; else empty."""


def show_queue(page: PageRequest) -> Response:
    """The card that was asked for, or the oldest, and a list of what comes then."""
    queue = page.site.read_queue()
    ids = list(queue.cards)
    wanted = page.read_query("card")
    is_gone = bool(wanted) and wanted not in queue.cards
    if not ids:
        last = page.site.read_last_act()
        return page.render("queue.html", card=None, rows=[], total=0, is_gone=is_gone, last=last)
    at = ids.index(wanted) if wanted in queue.cards else 0
    queue = read_proposal_now(page.site.open_host(), queue, ids[at])
    rows = [queue.row_of(queue.cards[each]) for each in ids[at : at + _LIST_SHOWN]]
    card = _describe(page, queue, ids[at])
    return page.render(
        "queue.html",
        card=card,
        rows=rows,
        total=len(ids),
        is_gone=is_gone,
        last=page.site.read_last_act(),
        accounts=match_accounts(queue, card.view.id, page.read_query("q"), _ACCOUNTS_SHOWN)
        if "correct" in card.actions
        else [],
        asked_card=card.view.id,
        typed=page.read_query("q"),
        parts=list_typed_parts(page),
        rows_of_split=count_rows(page),
        choices=list_choices(book_facts_of(queue).chart, book_facts_of(queue).banks.values()),
        whole=money.format_amount(abs(amount_to_split(queue, card.view.id))) if "correct" in card.actions else "",
        twins=list_possible_duplicates(book_facts_of(queue), queue.cards[ids[at]]) if card.posts_line else [],
    )


def show_accounts(page: PageRequest) -> Response:
    """The accounts that fit what is typed so far, as a part of a form; none where the card was decided since."""
    queue = page.site.read_queue()
    card_id = page.read_query("card")
    is_open = card_id in queue.cards
    found = match_accounts(queue, card_id, page.read_query("q")[:100], _ACCOUNTS_SHOWN) if is_open else []
    return page.render("accounts.html", accounts=found, asked_card=card_id, typed=page.read_query("q")[:100])


def show_group(page: PageRequest) -> Response:
    """The cards that one decision would cover, each with its row; of many a part."""
    queue = page.site.read_queue()
    card_id = page.part("card")
    _require_open(queue, card_id)
    group = card_group(queue, card_id, _GROUP_SHOWN)
    if group is None:
        raise UsageError("this kind of card has no groups", remedy="Decide it by itself.")
    digests = digest_shown_cards(queue, group.ids)
    return page.render(
        "group.html",
        group=group,
        digests=digests,
        card=_describe(page, queue, card_id),
        suggested=group_suggestion(queue, group.ids),
        accounts=match_accounts(queue, card_id, page.read_query("q")[:100], _ACCOUNTS_SHOWN),
        asked_card=card_id,
        typed=page.read_query("q"),
    )


def show_code(page: PageRequest) -> Response:
    """The code behind a card: what a proposal changes, or the script at the line that made the entry."""
    host = page.site.open_host()
    queue = read_proposal_now(host, page.site.read_queue(), page.part("card"))
    files = card_actions.card_code(host, queue, page.part("card"))
    return page.render(
        "code.html", files=files, card_id=page.part("card"), is_change=_is_proposal(queue, page), back=""
    )


def show_file(page: PageRequest) -> Response:
    """The bank file behind a card, at its row."""
    queue = page.site.read_queue()
    _require_open(queue, page.part("card"))
    view: FileView = bank_file(page.site.open_host(), queue, page.part("card"))
    return page.render("code.html", files=[view], card_id=page.part("card"), is_change=False, back="")


def decide(page: PageRequest) -> Response:
    """Take a decision about one card or a group."""
    form = page.form
    cards, digests = form.get_all("card"), form.get_all("digest")
    if not cards or len(cards) != len(digests):
        raise UsageError("the form names no card", remedy="Load the page again.")
    queue = page.site.read_queue()
    shown = dict(zip(cards, digests, strict=True))
    if folder := form.get("proposal"):
        shown[folder] = form.get("proposal_digest")
    rows = [queue.row_of(queue.cards[each]) for each in cards if each in queue.cards]
    about = cards_summary(rows) if rows else "the card"
    verb, _, value = form.get("choice").partition(":")
    if verb not in (*_VERBS, "later"):
        raise UsageError("the form names no such choice", remedy="Load the page again.")
    if verb == "later":
        return carry_out(
            page,
            lambda: _put_off(page, cards),
            shown,
            _address(cards[0]),
            _answer_about(page, cards[0]),
            what=f"Later: {about}",
            signs=False,
        )
    correction = None
    if verb == "correct":
        try:
            correction = _read_correction(page, queue, cards[0])
        except UsageError as error:
            return _go_back(page, cards[0], " ".join(str(error).split()))
    offered = card_choices(queue.cards[cards[0]]) if cards[0] in queue.cards else ()
    wanted = CardChoice(verb, value or verb, value)
    choice = next((each for each in offered if (each.verb, each.value) == (verb, value)), wanted)
    request = ActionRequest(
        choice,
        tuple(cards),
        about,
        correction=correction,
        reason=form.get("reason").strip() or _REASONS.get(form.get("outcome"), ""),
        outcome=form.get("outcome") or None,
        duplicate_of=form.get("duplicate_of").strip() or None,
        words=form.get("number").strip(),
        without=tuple(form.get_all("without")),
    )
    left_out = f", without {', '.join(request.without)}" if request.without else ""
    if verb == _RUN_VERB and page.session.passkey and list_reviewers(page.site.open_host())["reviewers"]:
        raise PolicyError(
            "a run is not repeated with a passkey here",
            remedy="Sign in with a link of the terminal: cleared server --link.",
        )
    return carry_out(
        page,
        lambda: page.site.execute_request(request),
        shown,
        _address(cards[0]),
        _answer_about(page, cards[0]),
        what=f"{_name_choice(form, choice)}{left_out}: {about}",
        changes_what_runs=verb == _LIVE_VERB,
        signs=verb != _RUN_VERB,
        is_long=verb in (_LIVE_VERB, _RUN_VERB, _TEACHES),
    )


def undo(page: PageRequest) -> Response:
    """Take back the act that the button names, if it is still the last one."""
    last, act = page.site.read_last_act(), page.form.get("act")
    shown = last.find_shown(act) if last is not None else None

    def answer(result: ActionResult) -> Response:
        if not result.ok:
            return page.go_to("/queue", f"Not done: {result.text}", ok=False)
        queue, text = page.site.read_queue(), result.text
        for card in (queue.cards[each] for each in result.cards[:_LIST_SHOWN] if each in queue.cards):
            text = text.replace(card.id, queue.row_of(card).text)
        return page.go_to(_address(*result.cards[:1]), text)

    request = replace(UNDO, act=act)
    return carry_out(
        page,
        lambda: page.site.execute_request(request),
        None,
        "/queue",
        answer,
        what=f"Undo {shown.commit.subject}" if shown is not None else "Undo",
        changes_what_runs=shown is not None and bool(shown.rolled_back),
    )


def _address(card: str = "") -> str:
    return f"/queue?card={quote(card)}" if card else "/queue"


def _name_choice(form: Form, choice: CardChoice) -> str:
    """The verb, and what it takes: an answer, an account, amounts, what a bank line is."""
    more = choice.meaning or form.get("split") or form.get("account") or form.get("outcome")
    return f"{_VERBS.get(choice.verb, choice.verb)} {more.strip()[:100]}".strip()


def _answer_about(page: PageRequest, card: str) -> Answer:
    def answer(result: ActionResult) -> Response:
        if not result.ok:
            return _go_back(page, card, result.text)
        if isinstance(result.offer, Lesson):  # the proposal comes next: one button more makes it live
            return page.go_to(_address(result.offer.proposal.card), result.text)
        then = page.form.get("then")  # of a group of which this was a part
        is_left = bool(then) and then in page.site.read_queue().cards
        return page.go_to(f"/queue/{quote(then)}/group" if is_left else "/queue", result.text, act=result.act)

    return answer


def _go_back(page: PageRequest, card: str, problem: str) -> Response:
    """To the card again, with why it was refused and the split as it was typed."""
    parts = write_parts(list_typed_parts(page))
    more = f"&{urlencode({'parts': parts, 'note': page.form.get('note')[:500]})}#split" if parts else ""
    return page.go_to(f"{_address(card)}{more}", f"Not done: {problem}", ok=False)


def _put_off(page: PageRequest, cards: list[str]) -> ActionResult:
    done = card_decisions.skip_cards(page.site.open_host(), cards)
    return ActionResult("Put behind the others", True, act=done.commit)


def _read_correction(page: PageRequest, queue: QueueSnapshot, card_id: str) -> Correction:
    """The correction of the form: one account, or a split of several with amounts, and a note."""
    form = page.form
    note = form.get("note").strip() or None
    if list_typed_parts(page):
        lines = read_split(page, page.site.open_host(), amount_to_split(queue, card_id))
        return Correction(lines=lines, note=note, mixed=bool(form.get("mixed")))
    typed = form.get("split").strip()
    if typed:
        split = parse_split(queue, card_id, typed, mixed=bool(form.get("mixed")))
        if split.problem:
            raise UsageError(f"the split cannot be taken: {split.problem}", remedy="Write it like 5060=30 5070=12.50.")
        return Correction(lines=split.lines, note=note, mixed=split.mixed)
    return Correction(_read_account(form.get("account").strip()), note=note)


def _read_account(text: str) -> int:
    account = parse_count(text, 10)
    if account is None:
        raise UsageError("choose an account", remedy="Tap one of the list.")
    return account


def _describe(page: PageRequest, queue: QueueSnapshot, card_id: str) -> ShownCard:
    view, card = show_card(queue, card_id, page.session.passkey), queue.cards[card_id]
    receipt = str(card.details.get("receipt") or "") if card.kind == RECEIPT.name else ""
    actions = {choice.verb: choice for choice in view.choices if choice.verb != "answer"}
    return ShownCard(
        view,
        digest_shown_cards(queue, [card_id]),
        tuple(c for c in view.choices if c.verb == "answer"),
        actions,
        book_facts_of(queue).posts_line(card),
        card.kind == PROPOSAL.name and not may_change_what_runs(page),
        receipt,
        bool(receipt) and receipt in list_pictures(page.site.open_host(), [receipt]),
        number_to_type(queue, card),
    )


def _is_proposal(queue: QueueSnapshot, page: PageRequest) -> bool:
    card = queue.cards.get(page.part("card"))
    return card is not None and card.kind == PROPOSAL.name


def _require_open(queue: QueueSnapshot, card_id: str) -> None:
    if card_id not in queue.cards:
        raise UsageError("this card is decided, or there is none of that id", remedy="The queue shows what waits.")
