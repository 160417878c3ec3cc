"""What a client can read beside calling tools: agents, the books by month, and how agents are written."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote, unquote

from msgspec import Struct

from cleared.api.mcp_server.bounded_answer import clean_text, make_answer, to_json_text
from cleared.base.errors import UsageError
from cleared.books import queries
from cleared.changes.host import Host
from cleared.gate.language_guide import describe_language, read_examples
from cleared.gate.lint_rules import CHECKS, RULES
from cleared.primitives.registry.projections import render_markdown
from cleared.runs import run_queries

SCHEME: Final = "cleared://"
_AGENT: Final = re.compile(r"cleared://agents/([^/?#]{1,200})")
_MONTH: Final = re.compile(r"cleared://books/([0-9]{4}-[0-9]{2})", re.ASCII)
_MAX_LISTED: Final = 500
_JSON: Final = "application/json"
_MARKDOWN: Final = "text/markdown"
_PYTHON: Final = "text/x-python"


class Page(Struct, frozen=True):
    """A resource: its address, what it is called, what it is, its MIME type."""

    uri: str
    name: str
    description: str
    mime_type: str


def list_pages(host: Host) -> list[Page]:
    """The reference pages, the agents, and the months of the books, newest first."""
    pages = [page for page, _ in _REFERENCE.values()]
    pages.append(Page(f"{SCHEME}agents", "agents", "Every agent, without its source.", _JSON))
    for agent in run_queries.read_agents(host)[:_MAX_LISTED]:
        # What somebody pushed, and nobody approved, is not to speak for this server.
        is_live = agent["state"] in ("approved", "starter") and agent["description"]
        about = agent["description"] if is_live else f"An agent; {agent['state']}."
        pages.append(Page(agent_uri(agent["name"]), agent["name"], about, _PYTHON))
    with queries.open_committed_books(host) as (_, _snapshot, books, _bank):
        months = sorted(books.list_months(), reverse=True)[:_MAX_LISTED]
    for year, month in months:
        text = f"{year:04}-{month:02}"
        pages.append(Page(f"{SCHEME}books/{text}", f"books {text}", f"The entries of {text}.", _JSON))
    return pages


def list_templates() -> list[Page]:
    """Addresses with a place to fill in."""
    return [
        Page(f"{SCHEME}agents/{{name}}", "agent", "The script of an agent, as committed.", _PYTHON),
        Page(f"{SCHEME}books/{{month}}", "books by month", "The entries of a month, YYYY-MM.", _JSON),
    ]


def agent_uri(name: str) -> str:
    """The address of an agent's script."""
    return f"{SCHEME}agents/{quote(name, safe='')}"


def read_page(host: Host, uri: str) -> tuple[str, str]:
    """MIME type and text of a resource. Raises ``UsageError`` where there is none."""
    if uri in _REFERENCE:
        page, render = _REFERENCE[uri]
        return page.mime_type, clean_text(host, render(host))
    if uri == f"{SCHEME}agents":
        agents = [{k: v for k, v in a.items() if k != "source"} for a in run_queries.read_agents(host)]
        return _JSON, to_json_text(make_answer(host, agents))
    if match := _AGENT.fullmatch(uri):
        return _PYTHON, clean_text(host, str(run_queries.read_agent(host, unquote(match[1]))["source"]))
    if match := _MONTH.fullmatch(uri):
        return _JSON, to_json_text(make_answer(host, queries.read_journal(host, month=match[1])))
    shown = "".join(c if c.isprintable() else "?" for c in uri[:100])
    raise UsageError(f"there is no resource {shown!r}", remedy="resources/list names them.")


def _render_language(host: Host) -> str:
    tools = (
        "The examples name tools of a session. Here `history_try` is `agent_compare`, `propose` is `agent_propose`, "
        "and `query` is the tool of the same name, such as `queue_list`."
    )
    return f"{describe_language()}\n\n## Worked examples\n\n{tools}\n\n{read_examples()}\n"


def _render_rules(host: Host) -> str:
    lines = ["# Rules for scripts", ""]
    for stage, what in CHECKS.items():
        lines += [f"## {stage}: {what}", ""]
        lines += [f"- `{r.id}`: {r.finds}. {r.why} {r.remedy}" for r in RULES.values() if r.stage == stage]
        lines.append("")
    return "\n".join(lines)


def _render_primitives(host: Host) -> str:
    return render_markdown(host.registry)


def _render_accounts(host: Host) -> str:
    return to_json_text(make_answer(host, queries.read_accounts(host)))


def _page_of(name: str, description: str, mime_type: str, render: Callable[[Host], str]) -> Any:
    uri = f"{SCHEME}reference/{name}"
    return uri, (Page(uri, name, description, mime_type), render)


_REFERENCE: Final[Mapping[str, tuple[Page, Callable[[Host], str]]]] = dict(
    (
        _page_of("language", "The language of agents, with worked examples.", _MARKDOWN, _render_language),
        _page_of("rules", "The rules that a script is checked by.", _MARKDOWN, _render_rules),
        _page_of("primitives", "The functions that a script may call.", _MARKDOWN, _render_primitives),
        _page_of("accounts", "The chart of accounts.", _JSON, _render_accounts),
    )
)
