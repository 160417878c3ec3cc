"""A decision of a form, up to its answer: a passphrase is asked for, or the passkey that has signed in signs it. Both
send the form again; until then nothing is decided.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from datetime import datetime

from msgspec import Struct
from starlette.responses import Response

from cleared.base.errors import PolicyError
from cleared.changes.decisions.shown_cards import digest_shown
from cleared.review.action_request import ActionResult
from cleared.trust.device_signing import DeviceSigning, PasskeyKey
from cleared.trust.keys import is_passphrase_protected
from cleared.trust.passkey_records import Passkey
from cleared.web.access import Session
from cleared.web.long_work import Finish, Work
from cleared.web.page import PageRequest
from cleared.web.passkey_counters import note_counter
from cleared.web.passkey_options import Challenges, read_assertion, request_options
from cleared.web.site import Decided
from cleared.web.work_pages import answer_when_done

Answer = Callable[[ActionResult], Response]


def may_change_what_runs(page: PageRequest) -> bool:
    """Whether this browser can approve what runs: there is a passphrase to ask for, or a passkey."""
    return is_passphrase_protected() or bool(page.session.passkey)


def carry_out(
    page: PageRequest,
    action: Callable[[], ActionResult],
    shown: Mapping[str, str] | None,
    back: str,
    answer: Answer,
    *,
    what: str,
    changes_what_runs: bool = False,
    signs: bool = True,
    is_long: bool = False,
) -> Response:
    """Carry out what a person asks for, and ``answer`` with what came of it; a refusal is a result.

    ``shown``: digests of what they saw; None for what is about nothing that is shown. ``back``: the page to go to where
    they do not want to after all. ``what``: what is decided, in words. ``changes_what_runs``: the passphrase is asked
    for each time, or the passkey. ``signs``: False for what decides nothing, which no passkey signs. ``is_long``: it
    may take longer than somebody waits; its page can be left.

    Raises ``PolicyError`` where it changes what runs and there is neither, or the passkey counts no more.
    """
    prepared = prepare_decision(page) if signs else None
    if changes_what_runs and prepared is None and not is_passphrase_protected():
        raise PolicyError(
            "approving what runs asks for the passphrase of your approval key, and the key has none",
            remedy="Sign in with a passkey, or give the key one: cleared key protect.",
        )
    again = changes_what_runs and (prepared is None or not prepared.assertions)

    def decide() -> Decided:
        typed = page.form.get("passphrase") or None
        page.form.values.pop("passphrase", None)  # nothing keeps it
        return page.site.act_as_person(action, shown, typed, again=again, device=make_device(prepared, shown))

    def respond(decided: Decided) -> Response:
        if decided.wanted is not None and prepared is not None:
            return ask_passkey(page, prepared, decided.wanted, back, what)
        if decided.needs_passphrase:
            return _ask_passphrase(page, back, what, is_wrong=decided.is_wrong)
        return answer(decided.result)

    if not is_long:
        return respond(decide())

    def decide_long(_: Work) -> Finish:
        decided = decide()

        def finish(asking: PageRequest) -> Response:
            if asking.session is not page.session:
                raise PolicyError(
                    "this was decided in another browser, which is told what came of it",
                    remedy="The queue shows what still waits; Runs, what has run.",
                )
            return respond(decided)

        return finish

    return answer_when_done(page, page.site.work.begin(what, decide_long))


def _ask_passphrase(page: PageRequest, back: str, what: str, *, is_wrong: bool) -> Response:
    """The page that asks for it, with all that was decided to be sent once more."""
    values = page.form.values.items()
    fields = [(name, value) for name, each in values for value in each if name not in NOT_SENT_AGAIN]
    action = page.request.url.path
    return page.render("passphrase.html", fields=fields, action=action, back=back, what=what, is_wrong=is_wrong)


NOT_SENT_AGAIN = ("token", "passphrase", "question", "answer")
"""Fields of a form that are not part of what was decided."""


class PreparedDecision(Struct):
    """What was asked of a passkey. ``wanted``: the challenge it is to sign now."""

    session: Session
    passkey: Passkey
    now: datetime
    seed: str
    assertions: dict[bytes, str] = {}
    counted: set[str] = set()
    wanted: bytes = b""

    def note_assertion(self, assertion: str) -> None:
        """Note that an assertion counts; each is looked at once, however often the decision is tried."""
        if assertion not in self.counted:
            note_counter(self.passkey, assertion)
            self.counted.add(assertion)


def prepare_decision(page: PageRequest) -> PreparedDecision | None:
    """The decision of a form, where the person has signed in with a passkey; with its answer, if it was asked already.

    Raises ``PolicyError`` where that passkey counts no more, ``UsageError`` for an answer that is none.
    """
    if not page.session.passkey:
        return None
    passkey = page.site.find_passkey(page.session.passkey)
    if passkey is None:
        raise PolicyError("this passkey was removed", remedy="Sign in again.")
    challenges: Challenges = page.request.app.state.challenges
    asked = challenges.take(page.form.get("question")) if page.form.get("question") else None
    if not isinstance(asked, PreparedDecision) or asked.session is not page.session or asked.passkey != passkey:
        now = page.site.open_host().clock.now()
        return PreparedDecision(page.session, passkey, now, secrets.token_hex(16))
    asked.assertions[asked.wanted] = read_assertion(page.request, page.form.get("answer"))[1]
    return asked


def make_device(prepared: PreparedDecision | None, shown: object) -> DeviceSigning | None:
    """The passkey that signs the decision. ``shown``: the digests of what was shown."""
    if prepared is None:
        return None
    key = PasskeyKey(prepared.passkey.key, prepared.assertions, prepared.note_assertion)
    return DeviceSigning(key, prepared.passkey.name, prepared.now, prepared.seed, digest_shown(shown) if shown else "")


def ask_passkey(page: PageRequest, prepared: PreparedDecision, wanted: bytes, back: str, what: str) -> Response:
    """The page that has the passkey sign ``what``, and sends the form again; ``back``: where it leads who does not."""
    prepared.wanted = wanted
    challenges: Challenges = page.request.app.state.challenges
    fields = [
        (name, value) for name, values in page.form.values.items() for value in values if name not in NOT_SENT_AGAIN
    ]
    return page.render(
        "passkey.html",
        fields=fields,
        action=page.request.url.path,
        question=challenges.ask(prepared),
        options=request_options(prepared.passkey.host, wanted, prepared.passkey.credential),
        name=prepared.passkey.name,
        back=back,
        what=what,
    )
