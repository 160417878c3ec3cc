"""What the forms of a page have in common: one act of a person, carried out by the operation that the command uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date

from starlette.responses import Response

from cleared.base.errors import ClearedError, UsageError
from cleared.base.short_text import parse_count
from cleared.review.action_request import ActionResult
from cleared.web.page import PageRequest
from cleared.web.page_decisions import carry_out

ShowAgain = Callable[[PageRequest, str], Response]
"""Shows the page of a form once more, with what was typed and why it was refused."""


def answer_form(
    page: PageRequest,
    action: Callable[[], str],
    show_again: ShowAgain,
    *,
    what: str,
    back: str,
    shown: Mapping[str, str] | None = None,
    is_long: bool = False,
) -> Response:
    """Carry out ``action``, which says what it did, and go ``back``; a refusal shows the form again, as it was sent.

    ``what``: what is decided, in words. ``shown``: digests of what the person saw.
    """

    refusals: list[str] = []

    def carry_out_action() -> ActionResult:
        try:
            return ActionResult(action(), True)
        except ClearedError as error:
            refusals.append(str(error))  # with the lines that it has
            raise

    def answer(result: ActionResult) -> Response:
        if result.ok:
            return page.go_to(back, result.text)
        return refused(show_again(page, refusals[-1] if refusals else result.text))

    return carry_out(page, carry_out_action, shown, back, answer, what=what, is_long=is_long)


def refused(response: Response) -> Response:
    """The page of a form that was not carried out."""
    response.status_code = 409
    return response


def read_account(page: PageRequest, name: str = "account") -> int:
    """The number of an account in a form. Raises ``UsageError`` for none."""
    typed = page.read_value(name)
    number = parse_count(typed, 10) if typed else None
    if number is None:
        raise UsageError(f"{typed[:20]!r} is no account’s number" if typed else "choose an account")
    return number


def read_day(page: PageRequest, name: str) -> date:
    """A day in a form. Raises ``UsageError`` for none."""
    typed = page.read_value(name)
    try:
        return date.fromisoformat(typed)
    except ValueError:
        raise UsageError(f"{typed[:20]!r} is no day" if typed else "choose a day", remedy="Write 2025-01-31.") from None
