"""Runs: each with its calls on a time line, beside the script's lines."""

from __future__ import annotations

import json
from typing import Any, Final

from starlette.responses import Response

from cleared.base.short_text import parse_count, shorten_text
from cleared.runs import run_queries
from cleared.web.page import PageRequest

_LISTED: Final = 50
_MOST_PAGES: Final = 40
"""Of older runs ``cleared run list`` tells."""
_CALLS: Final = 500
_TEXT: Final = 400
"""Characters of an argument or result that are shown."""


def list_runs(page: PageRequest) -> Response:
    """The newest runs, a page of them; of one agent where it is asked for."""
    host, agent = page.site.open_host(), page.read_query("agent")[:100]
    number = min(max(parse_count(page.read_query("page", "1")) or 1, 1), _MOST_PAGES)
    first = (number - 1) * _LISTED
    runs = run_queries.read_runs(host, first + _LISTED + 1, agent or None)
    with host.open_last_commit() as snapshot:
        files = snapshot.list_folder(host.layout.agents_dir)
    return page.render(
        "runs.html",
        runs=runs[first : first + _LISTED],
        agents=sorted({*(file.removesuffix(".py") for file in files if file.endswith(".py")), agent} - {""}),
        asked=agent,
        number=number,
        has_more=len(runs) > first + _LISTED and number < _MOST_PAGES,
    )


def show_run(page: PageRequest) -> Response:
    """One run."""
    run = run_queries.read_run(page.site.open_host(), page.part("run"))
    calls = [_describe_call(call) for call in run["calls"][:_CALLS]]
    longest = max((call["ms"] for call in calls), default=0) or 1
    error = run.get("error")
    return page.render(
        "run.html",
        run=run,
        calls=calls,
        longest=longest,
        more=max(0, len(run["calls"]) - _CALLS),
        error=error if isinstance(error, dict) else {"message": error} if error else None,
        result=None if run.get("result") is None else json.dumps(run["result"], ensure_ascii=False)[:_TEXT],
    )


def _describe_call(call: dict[str, Any]) -> dict[str, Any]:
    return {
        "number": call["number"],
        "where": f"{call['file']}:{call['line']}",
        "depth": min(call["depth"], 8),
        "name": call["name"],
        "arguments": shorten_text(call["arguments"], _TEXT),
        "result": shorten_text(call["error"] or call["result"] or "", _TEXT),
        "failed": bool(call["error"]),
        "ms": float(call["duration_ms"]),
    }
