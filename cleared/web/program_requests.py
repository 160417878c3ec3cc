"""What requests of programs have in common: no session and no cookie, a bounded body, answers as JSON."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from traceback import print_exception
from typing import Any, Final, TypeVar

from anyio import CapacityLimiter, to_thread
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from cleared.base.errors import ClearedError, ExitCode, Interrupted
from cleared.base.short_text import parse_count
from cleared.sandbox.bridge.jsonrpc import encode_frame
from cleared.web.client_file import ClientFile, Scope
from cleared.web.client_tokens import allows_scope, find_token
from cleared.web.page import find_site
from cleared.web.request_guard import BodyRefused
from cleared.web.site import Site

MAX_CALLS: Final = 16
"""Calls of the API that are worked on at once; others wait. A long run is to leave threads for pages and webhooks."""
BODY_SECONDS: Final = 15.0
"""How long a program may take to send its body."""
REFUSAL_STATUSES: Final[Mapping[int, int]] = {
    ExitCode.FAILED: 422,
    ExitCode.USAGE: 400,
    ExitCode.REFUSED: 403,
    ExitCode.UNUSABLE: 500,
    ExitCode.BUSY: 503,
}
"""Exit code of a refusal → HTTP status of the answer that says it."""

_T = TypeVar("_T")


class Refused(Exception):
    """A request is answered with this status. ``headers`` go with it."""

    def __init__(self, status: int, cause: str, remedy: str = "", headers: Mapping[str, str] | None = None) -> None:
        super().__init__(cause)
        self.status, self.cause, self.remedy, self.headers = status, cause, remedy, dict(headers or {})


Endpoint = Callable[[Request, Site], Awaitable[Response]]


def program_endpoint(answer: Endpoint) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint for programs: of a workspace that is served; whatever goes wrong is an answer in JSON."""

    async def respond(request: Request) -> Response:
        site = find_site(request)
        if site is None:
            return render_refusal(Refused(404, "there is no such workspace here"))
        return await answer_program(request, answer(request, site))

    return respond


async def answer_program(request: Request, answer: Awaitable[Response]) -> Response:
    """The answer; whatever goes wrong is one in JSON."""
    try:
        return await answer
    except Refused as refusal:
        return render_refusal(refusal)
    except Interrupted:
        return render_refusal(Refused(503, "the server is ending"))
    except ClearedError as error:
        return render_refusal(refuse_as(error))
    except (BodyRefused, ClientDisconnect):
        raise
    except Exception as error:  # noqa: BLE001
        known = request.app.state.explain_fault(error)
        if known is not None:
            return render_refusal(refuse_as(known))
        print_exception(error)
        return render_refusal(Refused(500, "the program made a mistake", "The server's terminal says more."))


def refuse_as(error: ClearedError) -> Refused:
    """The answer that a refusal is."""
    status = REFUSAL_STATUSES.get(error.exit_code, 500)
    return Refused(status, error.message, error.remedy or "", {"Retry-After": "1"} if status == 503 else None)


def answer_json(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer, as ASCII."""
    return Response(encode_frame(value), status, dict(headers or {}), "application/json")


async def require_scope(request: Request, file: ClientFile, scope: Scope) -> None:
    """Raises ``Refused`` where the request shows no token that is in this file, or one without this scope."""
    shown = request.headers.getlist("authorization")
    kind, _, text = shown[0].partition(" ") if len(shown) == 1 else ("", "", "")
    clients = await run_in_threadpool(file.read_clients)
    token = find_token(clients, text.strip()) if kind.lower() == "bearer" else None
    if token is None:
        raise Refused(
            401,
            "this request shows no token that counts here",
            "Show one: Authorization: Bearer TOKEN. A person makes it: cleared token add NAME.",
            {"WWW-Authenticate": "Bearer"},
        )
    if not allows_scope(token, scope):
        raise Refused(403, f"the token of {token.name} is for reading only", "cleared token add NAME --scope run")


async def read_body(request: Request, most: int) -> bytes:
    """The body, of at most so many bytes. Raises ``Refused`` where it is larger, or does not come in time."""
    lengths = request.headers.getlist("content-length")
    too_large = Refused(413, f"a body of at most {most >> 10} kB is taken here")
    if any((length := parse_count(each)) is None or length > most for each in lengths):
        raise too_large
    data = b""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                data += part
                if len(data) > most:
                    raise too_large
    except TimeoutError:
        raise Refused(408, f"the body did not come within {BODY_SECONDS:g} seconds") from None
    return data


async def work_for_program(request: Request, function: Callable[[], _T]) -> _T:
    """What the function gives, from a thread; of ``MAX_CALLS`` at once."""
    state = request.app.state
    if not hasattr(state, "call_limiter"):  # it belongs to the loop that answers
        state.call_limiter = CapacityLimiter(MAX_CALLS)
    with state.quiet_times.answering():
        return await to_thread.run_sync(function, limiter=state.call_limiter)


def render_refusal(refusal: Refused) -> Response:
    """The answer, with cause and remedy."""
    error = {"message": refusal.cause, "remedy": refusal.remedy or None}
    return answer_json({"error": error}, refusal.status, refusal.headers)
