"""The OpenAPI document: the methods as ``rpc.discover`` describes them, each as a path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import cleared
from cleared.api.rpc.methods import COMMANDS
from cleared.api.rpc.workspace_server import RequestHandler

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
