"""Signing in with a code from the terminal, and out."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from cleared.web.access import Access
from cleared.web.forms import read_form
from cleared.web.page_rendering import go_to, render_page


def cookie_name(request: Request) -> str:
    """Cookies do not know ports, so each server has a name of its own."""
    return f"cleared-{request.app.state.port}"


async def show_sign_in(request: Request) -> Response:
    """The form that takes a code. A link with the code after ``#`` fills and sends it."""
    return render_page(request, "sign_in.html", {"problem": ""})


async def sign_in(request: Request) -> Response:
    """Take a code; each counts once."""
    form = await read_form(request)
    access: Access = request.app.state.access
    cookie = access.open_session(form.get("code"))
    if cookie is None:
        problem = "This code does not count, or not any more. Enter in the terminal of cleared server prints a new one."
        return render_page(request, "sign_in.html", {"problem": problem}, status=403)
    response = go_to("/")
    response.set_cookie(
        cookie_name(request), cookie, httponly=True, samesite="strict", path="/", secure=request.app.state.is_secure
    )
    return response


async def sign_out(request: Request) -> Response:
    """End the session of this browser."""
    access: Access = request.app.state.access
    access.end_session(request.cookies.get(cookie_name(request), ""))
    response = go_to("/login")
    response.delete_cookie(cookie_name(request), path="/")
    return response
