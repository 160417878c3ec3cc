"""The operations as methods of ``cleared rpc``: reading, and running an agent. Never a decision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cleared.changes.host import Host
from cleared.domains.installed_domains import DomainTable
from cleared.gate.operation import REQUIRED, InvalidArgument, Operation
from cleared.sandbox.bridge.error_codec import place_data
from cleared.sandbox.bridge.jsonrpc import INVALID_PARAMS, RpcError
from cleared.service.operations.table import OPERATIONS

COMMANDS: Final[Mapping[str, Operation]] = DomainTable(
    lambda: {name: o for name, o in OPERATIONS.items() if o.effect in ("read", "run")}
)


def call_command(operation: Operation, host: Host, params: list[Any] | Mapping[str, Any]) -> Any:
    """What ``--json`` prints. Raises ``RpcError`` for wrong parameters, ``ClearedError`` for a refusal."""
    try:
        return operation.call_function(host, params)
    except InvalidArgument as error:
        data = {"type": "UsageError", "message": error.message, "place": place_data(error.place), "exit_code": 2}
        raise RpcError(INVALID_PARAMS, data={**data, "remedy": f"rpc.discover describes {operation.name}."}) from None


def describe_command(operation: Operation) -> dict[str, Any]:
    """A method in the OpenRPC document."""
    return {
        "name": operation.name,
        "summary": operation.doc,
        "paramStructure": "either",
        "params": [
            {"name": p.name, "required": p.default is REQUIRED, "schema": p.json_schema} for p in operation.parameters
        ],
        "result": {"name": "result", "schema": {}},
    }
