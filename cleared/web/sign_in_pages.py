"""Signing in with a code from the terminal, and out."""

from __future__ import annotations

import re
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from cleared.base.errors import ClearedError
from cleared.web.access import Access, Session
from cleared.web.forms import read_form
from cleared.web.page import require_token
from cleared.web.page_rendering import go_to, render_error, render_page
from cleared.web.passkey_pages import check_sign_in, sign_in_question

_QUEUE: Final = re.compile(r"(?:/w/[\w.~%-]{1,200})?/queue", re.ASCII)
"""Where a message on a phone leads, below the session's addresses."""


async def show_sign_in(request: Request) -> Response:
    """The form that takes a code. A link with the code after ``#`` fills and sends it."""
    return await _render_sign_in(request, str(request.query_params.get("to", "")))


async def _render_sign_in(request: Request, to: str, problem: str = "", status: int = 200) -> Response:
    question, options = await run_in_threadpool(sign_in_question, request)
    data = {"problem": problem, "question": question, "options": options, "to": _read_way(to)}
    return render_page(request, "sign_in.html", data, status=status)


async def sign_in(request: Request) -> Response:
    """Take a code, or the answer of a passkey; each counts once."""
    form = await read_form(request)
    access: Access = request.app.state.access
    if form.get("question"):
        try:
            passkey = await run_in_threadpool(check_sign_in, request, form.get("question"), form.get("answer"))
        except ClearedError as error:
            return await _render_sign_in(request, form.get("to"), " ".join(str(error).split()), 403)
        session: Session | None = access.open_passkey_session(passkey.key)
    else:
        session = access.open_session(form.get("code"))
    if session is None:
        problem = "This code does not count, or not any more. A new link is printed by: cleared server --link."
        return await _render_sign_in(request, form.get("to"), problem, 403)
    response = go_to(f"{session.path}{_read_way(form.get('to')) or '/'}")
    response.set_cookie(
        session.cookie_name,
        session.cookie,
        httponly=True,
        samesite="strict",
        path=session.path,
        secure=request.app.state.is_secure,
    )
    return response


def _read_way(to: str) -> str:
    """The page to go to after signing in, where one is named that a message leads to; else empty."""
    return to if _QUEUE.fullmatch(to) else ""


async def sign_out(request: Request) -> Response:
    """End the session of this browser."""
    access: Access = request.app.state.access
    session: Session | None = request.scope.get("session")
    response = go_to("/login")
    if session is not None:
        try:
            require_token(await read_form(request), session)
        except ClearedError as error:
            return render_error(request, error)
        access.end_session(session)
        response.delete_cookie(session.cookie_name, path=session.path)
    return response
