"""Today: what came in, what waits, what failed, what runs next."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from cleared.base.errors import PolicyError
from cleared.books.decisions.bank_agreement import describe_completeness, list_completeness
from cleared.books.importing.handed_files import find_readers
from cleared.changes.host import Host
from cleared.jobs.runtime_directory import own_runtime
from cleared.runs import run_queries
from cleared.service.status_report import list_next_runs, service_status
from cleared.web.page import PageRequest

_RUNS: Final = 8


def show_today(page: PageRequest) -> Response:
    """The start page of a workspace."""
    host = page.site.open_host()
    accounts = [describe_completeness(account) for account in list_completeness(host)]
    waiting = sorted(
        path.name for path in (host.root / host.layout.import_dir).glob("*") if path.is_file() and path.name[0] != "."
    )
    paths = [f"{host.layout.import_dir}/{name}" for name in waiting]
    return page.render(
        "today.html",
        status=service_status(host),
        runs=run_queries.read_runs(host, _RUNS),
        files=waiting,
        readers=find_readers(run_queries.read_agents(host), paths) if paths else [],
        upcoming=list_next_runs(host)[:_RUNS],
        accounts=accounts,
        unknown=page.site.unknown_files.list_files(),
        has_loop=_has_loop(host),
    )


def _has_loop(host: Host) -> bool:
    """Whether the loop's page has something to show; where its settings are refused, it says why."""
    try:
        return own_runtime(host.root, host.config).folder.is_dir()
    except PolicyError:
        return True
