"""``POST /hooks/AGENT``: a signed call is taken in, is on the disk, and is answered; the service runs the agent."""

from __future__ import annotations

import asyncio
import json
import re
from time import monotonic
from typing import Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from cleared.base.errors import UsageError, WorkspaceError
from cleared.base.short_text import parse_count
from cleared.sandbox.bridge.jsonrpc import parse_payload
from cleared.triggers.webhook_calls import CallState, WebhookCall
from cleared.web.program_requests import Refused, answer_json, read_body
from cleared.web.site import Site
from cleared.web.webhook_secrets import find_signer

MAX_BODY: Final = 64 << 10
MAX_WAIT: Final = 30.0
"""Seconds that a caller may have its answer wait for the run."""
_MAX_WAITERS: Final = 50
_POLL_SECONDS: Final = 0.1
_RETRY_AFTER: Final = "10"
"""Seconds after which a call may be sent again that could not be kept."""
_HEADERS: Final = ("webhook-id", "webhook-timestamp", "webhook-signature")
_ID: Final = re.compile(r"[!-\-/-~]{1,200}")
"""Printable, without the full stop, which separates the parts that are signed."""
_ID_WORDS: Final = "1 to 200 printable ASCII characters, without a full stop or a space"


async def take_call(request: Request, site: Site) -> Response:
    """202 with the event's key; with ``?wait=SECONDS``, 200 with the run's result where it ends within that time."""
    agent, wait, order = str(request.path_params["agent"]), _read_wait(request), _read_ordering_key(request)
    body = await read_body(request, MAX_BODY)
    sent = {name: request.headers.getlist(name) for name in _HEADERS}
    headers = {name: values[0] for name, values in sent.items() if len(values) == 1}
    call = await run_in_threadpool(_accept_call, site, agent, headers, body, order)
    answer: dict[str, Any] = {"key": call.key, "agent": agent}
    if not wait or request.app.state.waiters >= _MAX_WAITERS:
        return answer_json(answer, 202)
    request.app.state.waiters += 1
    try:
        state = await _await_run(request, site, call, wait)
    finally:
        request.app.state.waiters -= 1
    if state is None or state.result is None:
        return answer_json(answer, 202)
    return answer_json({**answer, "run": state.result}, 200)


def _read_wait(request: Request) -> float:
    seconds = parse_count(request.query_params.get("wait", "0"))
    if seconds is None:
        raise Refused(400, "wait is a number of seconds", f"At most {MAX_WAIT:g}.")
    return min(float(seconds), MAX_WAIT)


def _read_ordering_key(request: Request) -> str:
    text = request.query_params.get("ordering_key", "")
    if text and not _ID.fullmatch(text):
        raise Refused(400, f"ordering_key must be {_ID_WORDS}", "Such as the id of the customer or of the order.")
    return text


def _accept_call(site: Site, agent: str, headers: dict[str, str], body: bytes, order: str) -> WebhookCall:
    """Check and store the call. Raises ``Refused``, ``ClearedError``."""
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(400, f"the body is not UTF-8 (byte {error.start})") from None
    known = [each for each in site.clients.read_clients().webhooks if each.agent == agent]
    signer = find_signer(known, body, headers)
    if signer is None:
        raise Refused(
            401,
            "the call is not signed with a secret of this webhook, within the last five minutes",
            "Sign it as https://www.standardwebhooks.com says, with the secret that cleared webhook add printed.",
        )
    host = site.open_host()
    seconds = site.rates.seconds_to_wait(signer.id, host.config.webhooks.rate)
    if seconds:
        again = {"Retry-After": str(int(seconds) + 1)}
        raise Refused(429, "too many calls within a minute", "See webhooks.rate.", again)
    if not _ID.fullmatch(headers["webhook-id"]):
        raise Refused(400, f"webhook-id must be {_ID_WORDS}")
    try:
        text = json.dumps(parse_payload(body), ensure_ascii=True)
    except ValueError as error:
        raise Refused(400, f"the body is not JSON: {str(error)[:200]}") from None
    try:
        site.webhook_agents.refuse_other_triggers(host, agent)
    except UsageError as error:
        raise Refused(404, error.message, error.remedy or "") from None
    call = WebhookCall(agent, headers["webhook-id"], text, host.clock.now(), order)
    try:
        is_new = site.calls.add_call(call)
    except WorkspaceError as error:  # such as a fleet's database that is away for a while
        raise Refused(503, error.message, error.remedy or "", {"Retry-After": _RETRY_AFTER}) from None
    if not is_new:
        raise Refused(409, f"a call with this webhook-id was taken already; its event is {call.key}")
    return call


async def _await_run(request: Request, site: Site, call: WebhookCall, seconds: float) -> CallState | None:
    """What became of the call; None where its run has not ended in time."""
    until = monotonic() + seconds
    while monotonic() < until and not request.app.state.is_ending():
        try:
            state = await run_in_threadpool(site.calls.find_state, call.agent, call.id)
        except WorkspaceError:  # the call is taken all the same
            return None
        if state is not None and (state.result is not None or state.is_settled):
            return state
        await asyncio.sleep(_POLL_SECONDS)
    return None
