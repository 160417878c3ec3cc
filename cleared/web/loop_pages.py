"""The loop: its status page, and its tree as JSON for programs. To be read only."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from cleared.base.errors import ClearedError, WorkspaceError
from cleared.base.safe_files import describe_os_error
from cleared.jobs import file_schemas, loop_reader
from cleared.jobs.runtime_directory import RuntimeDirectory, own_runtime
from cleared.web.page import PageRequest
from cleared.web.page_rendering import render_page
from cleared.web.program_requests import answer_json, require_scope
from cleared.web.request_guard import RequestGuard
from cleared.web.site import Site
from cleared.web.static_files import PageFiles

REFRESH_SECONDS: Final = 5
"""Seconds after which a browser loads the page again."""
_MAX_SHOWN: Final = 25
_ANY_PATH: Final = re.compile(r".*", re.DOTALL)


def show_loop(page: PageRequest) -> Response:
    """The page of the workspace's own loop, for who has signed in."""
    host = page.site.open_host()
    return render_loop(page.request, own_runtime(host.root, host.config), page.site)


async def show_loop_tree(request: Request, site: Site) -> Response:
    """The tree of the workspace's own loop, for a program with a token and for who has signed in."""
    session = request.scope.get("session")
    if session is None or not await run_in_threadpool(site.admits, session):
        await require_scope(request, site.clients, "read")
    host = await run_in_threadpool(site.open_host)
    return await run_in_threadpool(answer_tree, request, own_runtime(host.root, host.config))


def render_loop(request: Request, runtime: RuntimeDirectory, site: Site | None) -> Response:
    """The status page; 503 with the reason where the loop's files cannot be read."""
    data: dict[str, object] = {
        "problem": "",
        "refresh": REFRESH_SECONDS,
        "tree": f"{request.url.path.rstrip('/')}/tree.json",
    }
    try:
        data["status"] = loop_reader.read_status(runtime)
        data["jobs"] = loop_reader.list_jobs(runtime, _MAX_SHOWN)
        data["knowledge"] = list(reversed(loop_reader.read_tree(runtime)["knowledge"]))
    except (ClearedError, OSError) as error:
        data["problem"] = _describe_problem(error)
    response = render_page(request, "loop.html", data, site=site, status=503 if data["problem"] else 200)
    response.headers["Retry-After"] = str(REFRESH_SECONDS)
    return response


def answer_tree(request: Request, runtime: RuntimeDirectory) -> Response:
    """The tree as the loop last wrote it; 304 where the client has it. 503 where it cannot be read."""
    try:
        body = file_schemas.encode_record(loop_reader.read_tree(runtime))
    except (ClearedError, OSError) as error:
        about = {"type": type(error).__name__, "message": _describe_problem(error)}
        return answer_json({"error": about}, 503, {"Retry-After": str(REFRESH_SECONDS)})
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    if _matches_tag(request.headers.getlist("if-none-match"), tag):
        return Response(status_code=304, headers={"ETag": tag})
    return Response(body, headers={"ETag": tag}, media_type="application/json")


def make_loop_application(runtime: RuntimeDirectory, hosts: list[str]) -> RequestGuard:
    """What ``cleared loop serve`` serves: this loop alone, to be read by every user of this machine."""

    async def show_page(request: Request) -> Response:
        return await run_in_threadpool(render_loop, request, runtime, None)

    async def show_tree(request: Request) -> Response:
        return await run_in_threadpool(answer_tree, request, runtime)

    async def show_health(request: Request) -> Response:
        return Response("ok\n", media_type="text/plain")

    app = Starlette(
        routes=[
            Route("/", show_page),
            Route("/tree.json", show_tree),
            Route("/healthz", show_health),
            Mount("/static", PageFiles()),
        ]
    )
    app.state.read_sites, app.router.redirect_slashes = dict, False
    return RequestGuard(app, hosts, _ANY_PATH)


def _describe_problem(error: ClearedError | OSError) -> str:
    if isinstance(error, OSError):
        return str(WorkspaceError(describe_os_error(error)))
    return str(error)


def _matches_tag(header_lines: Sequence[str], tag: str) -> bool:
    tags = [part.strip().removeprefix("W/") for line in header_lines for part in line.split(",")]
    return "*" in tags or tag in tags
