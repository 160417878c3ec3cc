"""The status page of a loop as HTML: without scripts, loading nothing, with every text escaped."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final

REFRESH_SECONDS: Final = 5
"""Seconds after which a browser loads the page again."""
_MAX_WAITING: Final = 20

_STYLE: Final = """
:root { color-scheme: light dark; font: 16px/1.45 system-ui, sans-serif; }
body { margin: 1.5rem auto; max-width: 72rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; }
dt { opacity: .75; } dd { margin: 0; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid #8886; }
td { overflow-wrap: anywhere; } td:first-child { min-width: 16rem; }
.bad { font-weight: bold; }
"""
_HASH: Final = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
CONTENT_POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The page's Content-Security-Policy: only its own style."""


def escape_text(value: object) -> str:
    """Text as HTML: markup is escaped, and characters that cannot be seen are written as escapes."""
    return escape("".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in str(value)))


def render_status(
    status: Mapping[str, Any], jobs: Iterable[Mapping[str, Any]], knowledge: Iterable[Mapping[str, Any]]
) -> str:
    """The page of a loop's status and jobs, as ``jobs.loop_reader`` reads them; ``knowledge`` is oldest first."""
    running, stop, counts = status["running"], status["stop"], status["counts"]
    rows = [
        ("Loop", f"up since {status['since']} (process {status['pid']})" if status["up"] else "not running"),
        ("State", f"{status['status']}: {stop['reason']}" if stop else status["status"]),
        ("Running", f"{running['job_id']} since {running['started_at']}" if running else "nothing"),
        ("Waiting", _describe_queue(status["queued"])),
        ("Ended", f"{counts['succeeded']} succeeded, {counts['failed']} failed, "
                  f"{counts['failed_or_no_result']} without a result"),
        ("Cycles", status["cycles"]),
        ("Files", status["runtime_dir"]),
    ]  # fmt: skip
    shown = "\n".join(f"<dt>{escape_text(name)}</dt><dd>{escape_text(value)}</dd>" for name, value in rows)
    ended = _render_table(
        ("Job", "Target", "Status", "Ended", "Seconds", "Summary"),
        (
            (j["job_id"], j["target"], j["status"], j["ended_at"] or "",
             "" if j["duration_sec"] is None else f"{j['duration_sec']:.1f}", j["summary"])
            for j in jobs
        ),
        "No jobs yet.",
    )  # fmt: skip
    refused = [(s["at"], f"{s['kind']} {s['target']}".strip(), s["reason"]) for s in reversed(status["safety_stops"])]
    notices = [(n["at"], n["text"]) for n in reversed(status["notices"])]
    knowledge_rows = [(k["at"], k["kind"], k["text"]) for k in reversed(list(knowledge))]
    parts = [f"<dl>\n{shown}\n</dl>", "<h2>Jobs</h2>", ended]
    if refused:
        parts += ["<h2>Refused</h2>", _render_table(("When", "What", "Why"), refused, "")]
    if notices:
        parts += ["<h2>Notices</h2>", _render_table(("When", "What"), notices, "")]
    parts += ["<h2>Known</h2>", _render_table(("Since", "Job type", "What"), knowledge_rows, "Nothing yet.")]
    parts.append('<p><a href="tree.json">The same as JSON</a></p>')
    return _render_page("\n".join(parts))


def render_unavailable(why: str) -> str:
    """The page that says why there is nothing to show."""
    return _render_page(f'<p class="bad">{escape_text(why)}</p>')


def _render_page(body: str) -> str:
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="refresh" content="{REFRESH_SECONDS}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Loop</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n<h1>Loop</h1>\n{body}\n</main>\n"
        "</body>\n</html>\n"
    )


def _describe_queue(queue: Sequence[Mapping[str, Any]]) -> str:
    if not queue:
        return "nothing"
    more = f" and {len(queue) - _MAX_WAITING} more" if len(queue) > _MAX_WAITING else ""
    return ", ".join(str(item["kind"]) for item in queue[:_MAX_WAITING]) + more


def _render_table(columns: Sequence[str], rows: Iterable[Sequence[object]], empty: str) -> str:
    body = "\n".join("<tr>" + "".join(f"<td>{escape_text(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    if not body:
        return f"<p>{escape_text(empty)}</p>"
    head = "".join(f'<th scope="col">{escape_text(column)}</th>' for column in columns)
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"
