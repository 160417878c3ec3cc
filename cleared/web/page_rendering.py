"""From data to a page. Every text is escaped twice over: for HTML by the templates, and its control and direction
characters as on a terminal."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from cleared.base.errors import ClearedError
from cleared.base.money import group_thousands
from cleared.base.terminal import count_noun, escape_text
from cleared.cards.kinds import kind_named
from cleared.sandbox.trigger_kinds import ON_DEMAND, TRIGGER_KINDS
from cleared.web.access import Session
from cleared.web.command_pages import describe_moment, link_commands
from cleared.web.onward_page import FRAGMENT
from cleared.web.site import BookStyle, Site
from cleared.web.static_files import find_static_address
from cleared.workspace.settings.setting_keys import write_value

SHOWN: Final = "cleared.shown"
"""What of the scope of a request is the state of the workspace that its page shows, as query values."""
_TEMPLATES: Final = Path(__file__).parent / "templates"
_FIELD: Final = re.compile(r"(?:^|(?<=   ))-?\d{4,}\.\d+(?= |$)")


def _clean(value: object) -> object:
    return escape_text(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _describe_triggers(names: Sequence[str]) -> str:
    kinds = [kind for kind in TRIGGER_KINDS if kind.name in names] or [ON_DEMAND]
    return "Runs " + ", ".join(kind.label for kind in kinds)


def _describe_due(text: str) -> str:
    """A time to come in its own time zone, with the day of the week."""
    return f"{datetime.fromisoformat(text):%a %Y-%m-%d %H:%M}"


@pass_context
def _describe_moment(context: Context, text: str) -> str:
    """A time on record, which is in UTC, in the time zone of the books; anything else as it is."""
    return describe_moment(text, _zone(context))


def _zone(context: Context) -> tzinfo | None:
    style: BookStyle | None = context["book_style"]
    return style.timezone if style is not None else None


@pass_context
def _link_commands(context: Context, text: str) -> Markup:
    """A text that names commands, with the page's way in the place of each."""
    return link_commands(text, str(context["prefix"]), context["thousands"], _zone(context))


@pass_context
def _group_amount(context: Context, amount: object) -> str:
    """An amount with the separators that the books' owner reads."""
    return group_thousands(str(amount), context["thousands"])


@pass_context
def _group_fields(context: Context, line: str) -> str:
    """A line of others' words with fields of the program, which three spaces part: amounts among these are grouped."""
    return _FIELD.sub(lambda found: group_thousands(found[0], context["thousands"]), line)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_clean,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["static"] = find_static_address
    environment.filters["count"] = count_noun
    environment.filters["moment"] = _describe_moment
    environment.filters["money"] = _group_amount
    environment.filters["fields"] = _group_fields
    environment.filters["setting"] = write_value
    environment.filters["ways"] = _link_commands
    environment.filters["due"] = _describe_due
    environment.filters["triggers"] = _describe_triggers
    environment.filters["kind_label"] = lambda kind: kind_named(kind).label
    return environment


def compile_templates() -> None:
    """Make all templates ready, which the first page would wait for."""
    for name in _environment().list_templates():
        _environment().get_template(name)


def address_prefix(session: Session | None, site: Site | None) -> str:
    """What the addresses of pages begin with: of this session, of this workspace. Empty where there is neither."""
    return (session.path if session is not None else "") + (site.prefix if site is not None else "")


def render_page(
    request: Request, template: str, data: Mapping[str, Any], *, site: Site | None = None, status: int = 200
) -> Response:
    """The page of a template. ``site``: the workspace it is about."""
    session: Session | None = request.scope.get("session")
    messages = []
    if session is not None and "hx-request" not in request.headers:  # another tab that looks for news takes none away
        messages, session.messages = list(dict.fromkeys(session.messages)), []  # asked for twice, it is told once
    style = site.style if site is not None else None
    text = (
        _environment()
        .get_template(template)
        .render(
            data,
            site=site,
            book_style=style,
            thousands=style.thousands if style is not None else "",
            prefix=address_prefix(session, site),
            session=session,
            messages=messages,
            sites=request.app.state.read_sites(),
            path=request.url.path,
            address=_find_address(request),
            state_shown=urlencode(request.scope.get(SHOWN) or (site.read_shown() if site is not None else {})),
        )
    )
    return HTMLResponse(text, status)


def _find_address(request: Request) -> str:
    """The address that the page has to take over, as it is the answer of a form that led to it; else empty."""
    if FRAGMENT not in request.scope:
        return ""
    url = request.url.replace(fragment=request.scope[FRAGMENT])
    return str(url).removeprefix(f"{url.scheme}://{url.netloc}")


def render_error(request: Request, error: ClearedError, *, site: Site | None = None, status: int = 409) -> Response:
    """A page that says what is wrong and what to do."""
    return render_page(request, "error.html", {"error": error}, site=site, status=status)


def go_to(path: str) -> Response:
    """Send the browser to another page after a form."""
    return RedirectResponse(path, 303)
