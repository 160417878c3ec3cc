"""Signing in with a code from the terminal, and out."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from cleared.base.errors import ClearedError
from cleared.web.access import Access
from cleared.web.forms import read_form
from cleared.web.page import require_token
from cleared.web.page_rendering import go_to, render_error, render_page
from cleared.web.passkey_pages import check_sign_in, sign_in_question


def cookie_name(request: Request) -> str:
    """Cookies do not know ports, so each server has a name of its own."""
    return f"cleared-{request.app.state.port}"


async def show_sign_in(request: Request) -> Response:
    """The form that takes a code. A link with the code after ``#`` fills and sends it."""
    return await _render_sign_in(request)


async def _render_sign_in(request: Request, problem: str = "", status: int = 200) -> Response:
    question, options = await run_in_threadpool(sign_in_question, request)
    data = {"problem": problem, "question": question, "options": options}
    return render_page(request, "sign_in.html", data, status=status)


async def sign_in(request: Request) -> Response:
    """Take a code, or the answer of a passkey; each counts once."""
    form = await read_form(request)
    access: Access = request.app.state.access
    if form.get("question"):
        try:
            passkey = await run_in_threadpool(check_sign_in, request, form.get("question"), form.get("answer"))
        except ClearedError as error:
            return await _render_sign_in(request, " ".join(str(error).split()), 403)
        cookie: str | None = access.open_passkey_session(passkey.key)
    else:
        cookie = access.open_session(form.get("code"))
    if cookie is None:
        problem = "This code does not count, or not any more. Enter in the terminal of cleared server prints a new one."
        return await _render_sign_in(request, problem, 403)
    response = go_to("/")
    response.set_cookie(
        cookie_name(request), cookie, httponly=True, samesite="strict", path="/", secure=request.app.state.is_secure
    )
    return response


async def sign_out(request: Request) -> Response:
    """End the session of this browser."""
    access: Access = request.app.state.access
    session = request.scope.get("session")
    if session is not None:
        try:
            require_token(await read_form(request), session)
        except ClearedError as error:
            return render_error(request, error)
    access.end_session(request.cookies.get(cookie_name(request), ""))
    response = go_to("/login")
    response.delete_cookie(cookie_name(request), path="/")
    return response
