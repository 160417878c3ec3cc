"""A decision on the page that a passkey signs: prepared, shown to the passkey, made."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from datetime import datetime

from starlette.responses import Response

from cleared.base.errors import PolicyError
from cleared.changes.decisions.shown_cards import digest_shown
from cleared.trust.device_signing import DeviceSigning, PasskeyKey
from cleared.trust.passkey_records import Passkey
from cleared.web.access import Session
from cleared.web.page import PageRequest
from cleared.web.passkey_counters import note_counter
from cleared.web.passkey_options import Challenges, read_assertion, request_options

NOT_SENT_AGAIN = ("token", "passphrase", "question", "answer")
"""Fields of a form that are not part of what was decided."""


@dataclass(slots=True)
class PreparedDecision:
    """What was asked of a passkey. ``wanted``: the challenge it is to sign now."""

    session: Session
    passkey: Passkey
    now: datetime
    seed: str
    assertions: dict[bytes, str] = field(default_factory=dict)
    counted: set[str] = field(default_factory=set)
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
