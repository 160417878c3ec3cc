"""``POST /api/METHOD``: the methods of ``cleared rpc`` over HTTP, for programs that show a token. Never a decision."""

from __future__ import annotations

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from cleared.api.rpc.methods import COMMANDS
from cleared.api.rpc.workspace_server import RequestHandler
from cleared.sandbox.bridge import jsonrpc
from cleared.sandbox.bridge.jsonrpc import RpcError
from cleared.web.api_description import describe_api
from cleared.web.client_file import Scope
from cleared.web.program_requests import Refused, answer_json, read_body, require_scope, work_for_program
from cleared.web.site import Site

MAX_BODY: Final = 1 << 20
"""Bytes of a request's parameters."""
_STATUSES: Final = {
    jsonrpc.METHOD_NOT_FOUND: 404,
    jsonrpc.INVALID_PARAMS: 400,
    jsonrpc.INVALID_REQUEST: 400,
    jsonrpc.PARSE_ERROR: 400,
}
_EXIT_STATUSES: Final = {1: 422, 2: 400, 3: 403, 4: 500, 5: 503}


def needed_scope(method: str) -> Scope:
    """What a token must allow for this method: ``run`` where it runs an agent."""
    command = COMMANDS.get(method)
    return "run" if command is not None and command.effect == "run" else "read"


async def call_method(request: Request, site: Site) -> Response:
    """``{"result": …}``, or ``{"error": …}`` as a client of ``cleared rpc`` sees it."""
    method = str(request.path_params["method"])
    await require_scope(request, site, needed_scope(method))
    body = await read_body(request, MAX_BODY)
    try:
        params = jsonrpc.parse_value(body) if body.strip() else {}
    except ValueError as error:
        raise Refused(400, f"the body is not JSON: {str(error)[:200]}") from None
    if not isinstance(params, list | dict):
        raise Refused(400, "the body must be an object of parameters, or a list of them")
    call = jsonrpc.Request(method, params)
    status, value = await work_for_program(request, lambda: _call(site, call))
    return answer_json(value, status, {"Retry-After": "1"} if status == 503 else None)


async def show_description(request: Request, site: Site) -> Response:
    """The OpenAPI document of the methods that this workspace offers."""
    await require_scope(request, site, "read")
    document = await work_for_program(request, lambda: describe_api(RequestHandler(site.open_host()), site.prefix))
    return answer_json(document)


def _call(site: Site, call: jsonrpc.Request) -> tuple[int, dict[str, Any]]:
    """Status and value of the answer."""
    try:
        value = {"result": RequestHandler(site.open_host()).handle_request(call)}
        jsonrpc.encode_frame(value)
    except RpcError as error:
        return _status_of(error), {"error": jsonrpc.error_frame(None, error)["error"]}
    except ValueError as error:
        return 500, {"error": {"code": jsonrpc.INTERNAL_ERROR, "message": f"it cannot be written as JSON: {error}"}}
    except KeyboardInterrupt:  # the run was broken off; only the main thread may end the process
        raise Refused(503, "the run was interrupted; nothing of it was kept") from None
    return 200, value


def _status_of(error: RpcError) -> int:
    code = error.data.get("exit_code") if isinstance(error.data, dict) else None
    return _STATUSES.get(error.code) or _EXIT_STATUSES.get(code or 0, 500)
