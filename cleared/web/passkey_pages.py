"""Registering a passkey with a link from the terminal, and signing in with one."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from cleared.base.errors import ClearedError, PolicyError
from cleared.trust.passkey_assertions import find_assertion_problem, make_challenge
from cleared.trust.passkey_records import Passkey
from cleared.web.forms import read_form
from cleared.web.page_rendering import render_error, render_page
from cleared.web.passkey_counters import note_counter
from cleared.web.passkey_invitations import Invitation, InvitationCodes, complete_invitation
from cleared.web.passkey_options import (
    Challenges,
    SignInQuestions,
    creation_options,
    page_host,
    read_assertion,
    read_created,
    request_options,
)
from cleared.web.site import Site

_SIGN_IN: Final = b"sign in\n"
_NO_LINK: Final = "This link does not count, or not any more. cleared passkey add NAME prints another."


async def show_registration(request: Request) -> Response:
    """The form that takes a link's code, from behind the ``#``."""
    return render_page(request, "passkey_new.html", {"problem": "", "options": "", "question": "", "name": ""})


async def register(request: Request) -> Response:
    """Take the code and ask the browser for a passkey; then take the passkey."""
    form = await read_form(request)
    challenges: Challenges = request.app.state.challenges
    try:
        if not form.get("question"):
            codes: InvitationCodes = request.app.state.invitation_codes
            invitation = codes.find_invitation(form.get("code"))
            if invitation is None:
                raise PolicyError(_NO_LINK)
            challenge = secrets.token_bytes(32)
            data = {
                "problem": "",
                "name": invitation.name,
                "question": challenges.ask((invitation, challenge)),
                "options": creation_options(request, invitation.name, challenge),
            }
            return render_page(request, "passkey_new.html", data)
        asked = challenges.take(form.get("question"))
        if not isinstance(asked, tuple) or not isinstance(asked[0], Invitation):
            raise PolicyError(_NO_LINK)
        new = await run_in_threadpool(read_created, request, form.get("answer"), asked[1])
        if not complete_invitation(asked[0], new):
            raise PolicyError(_NO_LINK)
    except ClearedError as error:
        return render_error(request, error, status=403)
    return render_page(request, "passkey_made.html", {"name": asked[0].name, "id": new.id})


def sign_in_question(request: Request) -> tuple[str, str]:
    """The id and the options of a question to any passkey of this page; two empty texts where there is none."""
    try:
        host = page_host(request)
        if not any(each.host == host for each in _list_passkeys(request)):
            return "", ""
    except ClearedError:
        return "", ""
    questions: SignInQuestions = request.app.state.sign_in_questions
    question = questions.ask()
    return question, request_options(host, make_challenge(_SIGN_IN + question.encode()))


def check_sign_in(request: Request, question: str, answer: str) -> Passkey:
    """The passkey that has answered. Raises ``PolicyError`` and ``UsageError`` where it does not count."""
    questions: SignInQuestions = request.app.state.sign_in_questions
    too_late = PolicyError("this was asked too long ago, or answered already", remedy="Load the page again.")
    if not questions.is_open(question):
        raise too_late
    credential, assertion = read_assertion(request, answer)
    host = page_host(request)
    passkey = next((p for p in _list_passkeys(request) if p.credential == credential and p.host == host), None)
    if passkey is None:
        raise PolicyError("this passkey is not registered here", remedy="Register it: cleared passkey add NAME.")
    problem = find_assertion_problem(passkey.key, assertion, _SIGN_IN + question.encode())
    if problem:
        raise PolicyError(f"this passkey does not sign you in: {problem}", remedy="Load the page again.")
    if not questions.close(question):
        raise too_late
    note_counter(passkey, assertion)
    return passkey


def _list_passkeys(request: Request) -> list[Passkey]:
    sites: Mapping[str, Site] = request.app.state.read_sites()
    return [passkey for site in sites.values() for passkey in site.list_passkeys()]
