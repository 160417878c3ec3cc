"""Tells open pages that something has changed: a commit, a run that began or ended, a step of a session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from cleared.base.errors import ClearedError
from cleared.web.access import Access, Session
from cleared.web.page import find_site
from cleared.web.site import STAMP, STEPS, Site

POLL_SECONDS: Final = 1.0
_MAX_STREAMS: Final = 20
"""Open pages that are told; others go on without."""
_KEEP_ALIVE_POLLS: Final = 15


async def stream_changes(request: Request) -> Response:
    """Server-sent events: ``data: STAMP``, another stamp for each state of the workspace; and events ``step`` alike,
    for each step of a session or of what is worked on; at last ``end``, where the reader has signed out. A page says in
    its query what it shows, so that what changes before it listens is told, too."""
    site = find_site(request)
    session = request.scope.get("session")
    if session is None or site is None or not await run_in_threadpool(site.admits, session):
        return Response(status_code=403)
    if request.app.state.streams >= _MAX_STREAMS:
        return Response(status_code=503)
    return StreamingResponse(_watch(request, site, session), media_type="text/event-stream")


async def _watch(request: Request, site: Site, session: Session) -> AsyncIterator[str]:
    """Until the server ends, or the session: then the page is to be asked for again, and the answer is the sign-in."""
    access: Access = request.app.state.access
    request.app.state.streams += 1
    last, last_step, polls = request.query_params.get(STAMP, ""), request.query_params.get(STEPS), 0
    try:
        while not request.app.state.is_ending():
            if not access.is_open(session):
                yield "event: end\ndata: signed out\n\n"
                return
            stamp = last
            with suppress(ClearedError, OSError):  # as while somebody repairs the workspace
                stamp = await run_in_threadpool(site.read_stamp)
            if stamp != last:
                last = stamp
                yield f"data: {stamp}\n\n"
            elif polls % _KEEP_ALIVE_POLLS == 0:
                yield ": still here\n\n"
            step = await run_in_threadpool(site.read_steps)
            if step != last_step and last_step is not None:
                yield f"event: step\ndata: {step}\n\n"
            last_step, polls = step, polls + 1
            await asyncio.sleep(POLL_SECONDS)
    finally:
        request.app.state.streams -= 1
