"""``POST /api/METHOD``: the methods of ``cleared rpc`` over HTTP, for programs that show a token. Never a decision.

The OpenAPI document describes them as rpc.discover does, each as a path.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

import cleared
from cleared.api.rpc.methods import COMMANDS
from cleared.api.rpc.workspace_server import RequestHandler
from cleared.sandbox.bridge import jsonrpc
from cleared.sandbox.bridge.jsonrpc import RpcError
from cleared.web.client_file import Scope
from cleared.web.program_requests import (
    REFUSAL_STATUSES,
    Refused,
    answer_json,
    read_body,
    require_scope,
    work_for_program,
)
from cleared.web.site import Site

MAX_BODY: Final = 1 << 20
"""Bytes of a request's parameters."""
_STATUSES: Final = {
    jsonrpc.METHOD_NOT_FOUND: 404,
    jsonrpc.INVALID_PARAMS: 400,
    jsonrpc.INVALID_REQUEST: 400,
    jsonrpc.PARSE_ERROR: 400,
}


def needed_scope(method: str) -> Scope:
    """What a token must allow for this method: ``run`` where it runs an agent."""
    command = COMMANDS.get(method)
    return "run" if command is not None and command.effect == "run" else "read"


async def call_method(request: Request, site: Site) -> Response:
    """``{"result": …}``, or ``{"error": …}`` as a client of ``cleared rpc`` sees it."""
    method = str(request.path_params["method"])
    await require_scope(request, site.clients, needed_scope(method))
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
    await require_scope(request, site.clients, "read")
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
    return _STATUSES.get(error.code) or REFUSAL_STATUSES.get(code or 0, 500)


_VERSION: Final = "3.1.0"
_REFUSALS: Final = {
    "400": "Wrong parameters.",
    "401": "No token that counts.",
    "403": "Refused, or the token is for reading only.",
    "404": "No such method.",
    "413": "Too large.",
    "422": "A script or a check failed.",
    "503": "Somebody else is writing; try again.",
}


def describe_api(handler: RequestHandler, prefix: str) -> dict[str, Any]:
    """The document. ``prefix``: what the workspace's addresses begin with."""
    found = handler.describe_methods()
    return {
        "openapi": _VERSION,
        "info": {"title": "cleared", "version": cleared.__version__},
        "paths": {f"{prefix}/api/{each['name']}": {"post": _describe_method(each)} for each in found["methods"]},
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": _point_to_components(found["$defs"]),
        },
        "security": [{"token": []}],
    }


def _describe_method(method: Mapping[str, Any]) -> dict[str, Any]:
    command = COMMANDS.get(method["name"])
    result = dict(command.result) if command is not None else method["result"]["schema"]
    params = {
        "type": "object",
        "properties": {each["name"]: _point_to_components(each["schema"]) for each in method["params"]},
        "required": [each["name"] for each in method["params"] if each["required"]],
    }
    answer = {"type": "object", "properties": {"result": _point_to_components(result)}, "required": ["result"]}
    refusals = {status: {"description": text} for status, text in _REFUSALS.items()}
    return {
        "operationId": method["name"],
        "summary": method["summary"],
        "description": method.get("description", method["summary"]),
        "requestBody": {"required": False, "content": {"application/json": {"schema": params}}},
        "responses": {"200": {"description": "Done.", "content": {"application/json": {"schema": answer}}}, **refusals},
    }


def _point_to_components(schema: Any) -> Any:
    """A JSON Schema whose references lead into this document."""
    if isinstance(schema, list):
        return [_point_to_components(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {
        key: str(value).replace("#/$defs/", "#/components/schemas/", 1)
        if key == "$ref"
        else _point_to_components(value)
        for key, value in schema.items()
    }
