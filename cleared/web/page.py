"""What all pages have in common: a signed-in person, the workspace, the form with its token, errors in words."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Mapping
from traceback import print_exception

from msgspec import Struct
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from cleared.base.errors import CheckFailed, ClearedError, PolicyError, UsageError
from cleared.web.access import Said, Session
from cleared.web.forms import Form, read_form
from cleared.web.onward_page import FIELD, OnwardPage
from cleared.web.page_rendering import SHOWN, address_prefix, go_to, render_error, render_page
from cleared.web.request_guard import BodyRefused
from cleared.web.site import Site

Handler = Callable[["PageRequest"], Response]
Endpoint = Callable[[Request], Awaitable[Response]]


class PageRequest(Struct, frozen=True):
    """One request of somebody who has signed in."""

    request: Request
    site: Site
    session: Session
    form: Form

    @property
    def prefix(self) -> str:
        """What the addresses of this session's pages of the workspace begin with."""
        return address_prefix(self.session, self.site)

    def part(self, name: str) -> str:
        """A part of the path."""
        return str(self.request.path_params[name])

    def read_query(self, name: str, default: str = "") -> str:
        """A value of the query."""
        return str(self.request.query_params.get(name, default))

    def read_value(self, name: str, default: str = "") -> str:
        """What was typed last: in a form that was refused, else in the query."""
        return (self.form.get(name, default) if name in self.form.values else self.read_query(name, default)).strip()

    def render(self, template: str, **data: object) -> Response:
        """The page of a template."""
        return render_page(self.request, template, {"read": self.read_value, **data}, site=self.site)

    def go_to(self, path: str, message: str = "", *, ok: bool = True, act: str = "") -> Response:
        """Another page of this workspace, with something said on it. ``act``: what an undo button under it is for."""
        if message:
            self.session.messages.append(Said(message, ok, act))
        return go_to(self.prefix + path)


def page(handler: Handler) -> Endpoint:
    """An endpoint that shows or takes something only from who has signed in; ``handler`` runs in a thread."""

    async def answer(request: Request) -> Response:
        session: Session | None = request.scope.get("session")
        if session is None:
            return go_to("/login")
        site: Site | None = find_site(request)
        if site is None:
            return render_error(request, UsageError("there is no such page", remedy="Begin at the start."), status=404)
        try:
            form = Form({}, [])
            if request.method == "POST":
                form = await read_form(request)
                require_token(form, session)
            if not await run_in_threadpool(site.admits, session):
                return go_to("/login")
            if request.method == "POST" and request.app.state.fleet is not None:
                await run_in_threadpool(_refuse_reader, site, session)
            with request.app.state.quiet_times.answering():
                response = await run_in_threadpool(_handle, handler, PageRequest(request, site, session, form))
            if response.status_code == 303 and form.get(FIELD):
                address = response.headers["location"]
                is_refusal = any(not said.ok for said in session.messages)
                onward = OnwardPage(request, address, is_refusal=is_refusal)
                return onward if address.startswith(f"{session.path}/") else response
            return response
        except ClearedError as error:
            return render_error(request, error, site=site, status=404 if isinstance(error, UsageError) else 409)
        except (BodyRefused, ClientDisconnect):
            raise
        except Exception as error:  # noqa: BLE001
            refusal = request.app.state.explain_fault(error)
            if refusal is None:
                print_exception(error)
                refusal = CheckFailed(
                    "the program made a mistake, and did not do it", remedy="Its terminal says more: please report it."
                )
            return render_error(request, refusal, site=site, status=500)

    return answer


def _handle(handler: Handler, asked: PageRequest) -> Response:
    if asked.request.method == "GET":  # before the page is made: what changes while it is made is told to it
        asked.request.scope[SHOWN] = asked.site.read_shown()
    return handler(asked)


def _refuse_reader(site: Site, session: Session) -> None:
    """Raises ``PolicyError`` for who may only look. On one machine, who may not decide may start what is approved."""
    if site.find_role(session) == "reader":
        raise PolicyError(
            "you may look at these books, and change nothing in them",
            remedy="Its owner says who may: reviewers: in config.yaml, then cleared config approve.",
        )


def require_token(form: Form, session: Session) -> None:
    """Raises ``PolicyError`` where the form is none of a page of this session."""
    if not hmac.compare_digest(form.get("token").encode(), session.token.encode()):
        raise PolicyError("this form is not of this session", remedy="Load the page again.")


def find_site(request: Request) -> Site | None:
    """The workspace that the path names, or the only one."""
    sites: Mapping[str, Site] = request.app.state.read_sites()
    name = request.path_params.get("workspace")
    return sites.get(name) if name is not None else next(iter(sites.values())) if len(sites) == 1 else None
