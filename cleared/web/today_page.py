"""Today: what came in, what waits, what failed, what runs next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from cleared.base.errors import PolicyError
from cleared.books.decisions.bank_agreement import describe_completeness, list_completeness
from cleared.books.importing.handed_files import find_readers
from cleared.changes.host import Host
from cleared.jobs.runtime_directory import own_runtime
from cleared.runs import run_queries
from cleared.service.status_report import NOT_UP, list_next_runs, service_status
from cleared.web.page import PageRequest
from cleared.web.site import Site

_RUNS: Final = 8


def show_today(page: PageRequest) -> Response:
    """The start page of a workspace."""
    host = page.site.open_host()
    accounts = [describe_completeness(account) for account in list_completeness(host)]
    waiting = sorted(
        path.name for path in (host.root / host.layout.import_dir).glob("*") if path.is_file() and path.name[0] != "."
    )
    paths = [f"{host.layout.import_dir}/{name}" for name in waiting]
    status = service_status(host)
    return page.render(
        "today.html",
        status=status,
        trouble=_list_trouble(page.site, status),
        runs=run_queries.read_runs(host, _RUNS),
        files=waiting,
        readers=find_readers(run_queries.read_agents(host), paths) if paths else [],
        upcoming=list_next_runs(host)[:_RUNS],
        accounts=accounts,
        unknown=page.site.unknown_files.list_files(),
        has_loop=_has_loop(host),
    )


def _list_trouble(site: Site, status: Mapping[str, Any]) -> list[str]:
    """What needs a look. That only the page is served does where something waits for the service; what it would start
    by itself says so in its place."""
    if site.has_service and (status["deliveries"]["waiting"] or site.calls.count_waiting()):
        return list(status["trouble"])
    return [line for line in status["trouble"] if line != NOT_UP]


def _has_loop(host: Host) -> bool:
    """Whether the loop's page has something to show; where its settings are refused, it says why."""
    try:
        return own_runtime(host.root, host.config).folder.is_dir()
    except PolicyError:
        return True
