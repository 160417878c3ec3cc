"""Which address shows which page."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route

from cleared.base.errors import ClearedError, UsageError
from cleared.web import (
    account_pages,
    agent_pages,
    bank_pages,
    book_pages,
    chat_pages,
    check_page,
    entry_pages,
    http_api,
    loop_pages,
    passkey_pages,
    period_pages,
    phone_pages,
    queue_pages,
    receipt_pages,
    reconcile_pages,
    report_pages,
    rule_pages,
    run_pages,
    setting_pages,
    sign_in_pages,
    today_page,
    upload,
    webhook_intake,
    work_pages,
)
from cleared.web.access import Access
from cleared.web.fleet_pages import FleetPages, ListedSite, list_needy
from cleared.web.live_events import stream_changes
from cleared.web.metrics import show_fleet_metrics, show_metrics
from cleared.web.page import page
from cleared.web.page_rendering import go_to, render_error, render_page
from cleared.web.passkey_invitations import InvitationCodes
from cleared.web.passkey_options import Challenges, SignInQuestions
from cleared.web.program_requests import Refused, program_endpoint, render_refusal
from cleared.web.quiet_times import QuietTimes
from cleared.web.request_guard import BodyRefused, Receive, RequestGuard, Scope, Send
from cleared.web.site import Site
from cleared.web.static_files import PageFiles

ExplainFault = Callable[[BaseException], ClearedError | None]
_PROGRAM_PATH: Final = re.compile(r"(?:/w/[^/]+)?/(?:hooks|api)/[^/]+")
"""What programs send to: they show a token or a signature, and no browser sends those by itself."""


def make_application(
    read_sites: Callable[[], Mapping[str, Site]],
    access: Access,
    hosts: list[str],
    is_ending: Callable[[], bool],
    explain_fault: ExplainFault,
    invitation_codes: InvitationCodes,
    quiet_times: QuietTimes,
    scheme: str = "http",
    fleet: FleetPages | None = None,
) -> RequestGuard:
    """The whole server. ``read_sites``: the workspaces of now, by name. ``explain_fault`` says what refusal an
    exception is, if any."""
    pages = make_routes()
    is_single = len(read_sites()) == 1 and fleet is None
    routes = [
        Route("/login", sign_in_pages.show_sign_in),
        Route("/login", sign_in_pages.sign_in, methods=["POST"]),
        Route("/passkeys/new", passkey_pages.show_registration),
        Route("/passkeys/new", passkey_pages.register, methods=["POST"]),
        Route("/healthz", _show_health),
        Mount("/static", PageFiles()),
        *([Route("/metrics", show_fleet_metrics)] if fleet is not None else []),
        *(pages if is_single else [Route("/", _list_sites), Mount("/w/{workspace}", routes=pages)]),
    ]
    app = Starlette(
        routes=routes,
        middleware=[Middleware(GZipMiddleware), Middleware(SessionFinder)],
        exception_handlers={
            404: _show_missing,
            405: _show_missing,
            BodyRefused: _refuse_body,
            ClientDisconnect: _refuse_body,
            ClearedError: _explain_refusal,
        },
    )
    app.router.redirect_slashes = False
    app.state.read_sites, app.state.access = read_sites, access
    app.state.challenges, app.state.sign_in_questions = Challenges(), SignInQuestions()
    app.state.invitation_codes, app.state.quiet_times = invitation_codes, quiet_times
    app.state.is_secure, app.state.streams, app.state.is_ending = scheme == "https", 0, is_ending
    app.state.explain_fault, app.state.waiters, app.state.fleet = explain_fault, 0, fleet
    return RequestGuard(app, hosts, _PROGRAM_PATH, scheme)


def make_routes() -> list[Route]:
    """The pages of one workspace."""
    return [
        Route("/", page(today_page.show_today)),
        Route("/queue", page(queue_pages.show_queue)),
        Route("/queue", page(queue_pages.decide), methods=["POST"]),
        Route("/queue/undo", page(queue_pages.undo), methods=["POST"]),
        Route("/queue/accounts", page(queue_pages.show_accounts)),
        Route("/queue/{card}/group", page(queue_pages.show_group)),
        Route("/queue/{card}/code", page(queue_pages.show_code)),
        Route("/queue/{card}/file", page(queue_pages.show_file)),
        Route("/agents", page(agent_pages.list_agents)),
        Route("/agents/{name}", page(agent_pages.show_agent)),
        Route("/agents/{name}", page(agent_pages.run_agent), methods=["POST"]),
        Route("/agents/{name}/changes/{proposal}", page(agent_pages.show_change)),
        Route("/agents/{name}/decide", page(agent_pages.decide_agent), methods=["POST"]),
        Route("/runs", page(run_pages.list_runs)),
        Route("/runs/{run}", page(run_pages.show_run)),
        Route("/books", page(book_pages.show_books)),
        Route("/books/reconcile", page(reconcile_pages.show_reconciliation)),
        Route("/books/reconcile", page(reconcile_pages.reconcile), methods=["POST"]),
        Route("/books/opening", page(reconcile_pages.show_openings)),
        Route("/books/opening", page(reconcile_pages.post_openings), methods=["POST"]),
        Route("/books/check", page(check_page.check_books)),
        Route("/books/months", page(period_pages.show_months)),
        Route("/books/months", page(period_pages.decide_months), methods=["POST"]),
        Route("/books/accounts", page(account_pages.show_chart)),
        Route("/books/accounts", page(account_pages.add_to_chart), methods=["POST"]),
        Route("/books/accounts/{number}", page(account_pages.show_account)),
        Route("/books/accounts/{number}", page(account_pages.change_account), methods=["POST"]),
        Route("/books/entries", page(book_pages.search_entries)),
        Route("/books/entries/{entry}", page(entry_pages.show_entry)),
        Route("/books/entries/{entry}", page(entry_pages.decide_entry), methods=["POST"]),
        Route("/bank", page(bank_pages.show_bank)),
        Route("/bank/files/{file}", page(bank_pages.show_unknown_file)),
        Route("/bank/files/{file}", page(bank_pages.add_bank), methods=["POST"]),
        Route("/receipts", page(receipt_pages.show_receipts)),
        Route("/receipts/{receipt}", page(receipt_pages.show_receipt)),
        Route("/receipts/{receipt}", page(receipt_pages.decide_receipt), methods=["POST"]),
        Route("/receipts/{receipt}/file", page(receipt_pages.show_receipt_file)),
        Route("/rules", page(rule_pages.show_rules)),
        Route("/rules", page(rule_pages.change_rules), methods=["POST"]),
        Route("/settings", page(setting_pages.show_settings)),
        Route("/settings", page(setting_pages.approve_waiting), methods=["POST"]),
        Route("/settings/{key}", page(setting_pages.show_setting)),
        Route("/settings/{key}", page(setting_pages.change_setting), methods=["POST"]),
        Route("/phones", page(phone_pages.show_phones)),
        Route("/phones", page(phone_pages.change_phones), methods=["POST"]),
        Route("/chat", page(chat_pages.list_sessions)),
        Route("/chat", page(chat_pages.take_request), methods=["POST"]),
        Route("/chat/{session}", page(chat_pages.show_session)),
        Route("/reports", page(report_pages.list_reports)),
        Route("/reports/{name}", page(report_pages.show_report)),
        Route("/reports/{name}/file.{format}", page(report_pages.download_report)),
        Route("/work/{work}", page(work_pages.show_work)),
        Route("/files", page(upload.take_files), methods=["POST"]),
        Route("/hooks/{agent}", program_endpoint(webhook_intake.take_call), methods=["POST"]),
        Route("/api/openapi.json", program_endpoint(http_api.show_description)),
        Route("/api/{method}", program_endpoint(http_api.call_method), methods=["POST"]),
        Route("/metrics", program_endpoint(show_metrics)),
        Route("/loop", page(loop_pages.show_loop)),
        Route("/loop/tree.json", program_endpoint(loop_pages.show_loop_tree)),
        Route("/live", stream_changes),
        Route("/sign-out", sign_in_pages.sign_out, methods=["POST"]),
    ]


class SessionFinder:
    """Puts the session that a request's path and cookie open into its scope; what follows that path is routed."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """An ASGI application."""
        if scope["type"] == "http":
            access: Access = scope["app"].state.access
            path = "/".join(scope["path"].split("/")[:3])
            session = access.find_session(path, HTTPConnection(scope).cookies)
            scope["session"] = session
            if session is not None:
                scope["root_path"] = session.path
        await self._app(scope, receive, send)


async def _list_sites(request: Request) -> Response:
    """The workspaces that are served, where there are several; those of a fleet by what waits."""
    session = request.scope.get("session")
    if session is None:
        return go_to("/login")
    sites: Mapping[str, Site] = request.app.state.read_sites()
    fleet: FleetPages | None = request.app.state.fleet
    if fleet is not None:
        listed = await run_in_threadpool(list_needy, fleet, session, sites)
    else:
        admitting = [site for site in sites.values() if await run_in_threadpool(site.admits, session)]
        listed = [ListedSite(site) for site in admitting]
    return render_page(request, "workspaces.html", {"listed": listed})


async def _show_health(request: Request) -> Response:
    """For monitors: that the server answers. It says nothing of the books."""
    return JSONResponse({"ok": True})


async def _refuse_body(request: Request, error: Exception) -> Response:
    """What came is too large or too slow; or the client is gone, and nobody reads this."""
    status, text = (error.status, error.text) if isinstance(error, BodyRefused) else (400, "The body ended early.")
    return PlainTextResponse(f"{text}\n", status, {"Connection": "close"})


async def _explain_refusal(request: Request, error: Exception) -> Response:
    """What nobody has signed in for is no form; or a workspace among several cannot be opened."""
    assert isinstance(error, ClearedError)
    return render_error(request, error, status=400 if isinstance(error, UsageError) else 409)


async def _show_missing(request: Request, error: Exception) -> Response:
    if _PROGRAM_PATH.fullmatch(request.url.path):
        status = error.status_code if isinstance(error, HTTPException) else 404
        return render_refusal(Refused(status, "there is nothing of that name and method here"))
    if request.scope.get("session") is None:
        return go_to("/login")
    return render_page(request, "missing.html", {}, status=404)
