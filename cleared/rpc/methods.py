"""The commands that ``cleared rpc`` offers beside the primitives: reading, and running an agent. Never a decision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

from cleared import queries
from cleared.bridge.jsonrpc import INVALID_PARAMS, RpcError
from cleared.changes.host import Host
from cleared.ledger.entry import STATUSES
from cleared.triggers.manual_runs import run_command

REQUIRED: Final = object()
MAX_INTEGER: Final = 10**9
_JSON_TYPES: Final = {"string": str, "integer": int, "boolean": bool}


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a method: its JSON type, or ``any``. Null stands for its default, where it has one."""

    name: str
    type: str
    default: Any = REQUIRED
    choices: tuple[str, ...] = ()
    least: int = 0

    @property
    def json_schema(self) -> dict[str, Any]:
        if self.type == "any":
            return {}
        schema: dict[str, Any] = {"type": [self.type, "null"] if self.default is None else self.type}
        if self.choices:
            schema["enum"] = [*self.choices, None] if self.default is None else list(self.choices)
        return schema if self.default in (REQUIRED, None) else {**schema, "default": self.default}

    def read_value(self, method: str, value: Any) -> Any:
        """The value, checked. Raises ``RpcError``."""
        if value is None and self.default is not REQUIRED:
            return self.default
        if self.type == "any":
            return value
        expected = _JSON_TYPES[self.type]
        if type(value) is not expected:
            raise invalid_params(method, self.name, f"{self.name} must be of type {self.type}")
        if type(value) is int and not self.least <= value <= MAX_INTEGER:
            raise invalid_params(method, self.name, f"{self.name} must lie between {self.least} and {MAX_INTEGER}")
        if self.choices and value not in self.choices:
            raise invalid_params(method, self.name, f"{self.name} must be one of {', '.join(self.choices)}")
        return value


@dataclass(frozen=True, slots=True)
class RpcCommand:
    """A method with a dot in its name; the result is what ``--json`` prints."""

    name: str
    doc: str
    function: Callable[..., Any]
    args: tuple[Parameter, ...] = ()

    def call_function(self, host: Host, params: list[Any] | Mapping[str, Any]) -> Any:
        """Raises ``RpcError`` for wrong parameters, ``ClearedError`` for a refusal."""
        names = [a.name for a in self.args]
        if isinstance(params, list):
            if len(params) > len(names):
                raise invalid_params(
                    self.name, None, f"{self.name} takes at most {len(names)} arguments, not {len(params)}"
                )
            params = dict(zip(names, params, strict=False))
        for key in params:
            if key not in names:
                near = get_close_matches(key, names, n=1)
                hint = f"did you mean {near[0]}?" if near else f"it takes {', '.join(names) or 'none'}"
                raise invalid_params(self.name, key[:60], f"{self.name} has no argument {key[:60]!r}; {hint}")
        values = {}
        for arg in self.args:
            if arg.name in params:
                values[arg.name] = arg.read_value(self.name, params[arg.name])
            elif arg.default is REQUIRED:
                raise invalid_params(self.name, arg.name, f"{self.name} needs {arg.name}")
            else:
                values[arg.name] = arg.default
        return self.function(host, **values)


def invalid_params(method: str, field: str | None, message: str) -> RpcError:
    """The error for a wrong parameter (``field``)."""
    place = {"file": None, "line": None, "column": None, "field": field} if field else None
    data = {"type": "UsageError", "message": message, "place": place, "exit_code": 2}
    return RpcError(INVALID_PARAMS, data={**data, "remedy": f"rpc.discover describes {method}."})


def _list_agents(host: Host) -> Any:
    return [{k: v for k, v in agent.items() if k != "source"} for agent in queries.read_agents(host)]


def _run_agent(host: Host, name: str, dry_run: bool, data: Any, again: str | None) -> Any:
    return run_command(host, name, dry_run=dry_run, data=data, again=again).to_json_object()


COMMANDS: Final = {
    c.name: c
    for c in (
        RpcCommand("agent.list", "Every agent, without its source.", _list_agents),
        RpcCommand(
            "agent.show",
            "One agent: its header, source and findings.",
            queries.read_agent,
            (Parameter("name", "string"),),
        ),
        RpcCommand(
            "agent.run",
            "Run an agent once: one commit or nothing. The result tells how it ended, failures too.",
            _run_agent,
            (
                Parameter("name", "string"),
                Parameter("dry_run", "boolean", False),
                Parameter("data", "any", None),
                Parameter("again", "string", None),
            ),
        ),
        RpcCommand(
            "run.list",
            "The newest runs first.",
            queries.read_runs,
            (Parameter("limit", "integer", 20, least=1), Parameter("agent", "string", None)),
        ),
        RpcCommand(
            "run.show",
            "One run with every call.",
            lambda host, id: queries.read_run(host, id),
            (Parameter("id", "string"),),
        ),
        RpcCommand(
            "queue.list",
            "The review queue, oldest first.",
            queries.read_cards,
            (Parameter("status", "string", "open", ("open", "resolved", "all")),),
        ),
        RpcCommand(
            "journal.list",
            "Entries in the order of their ids; month is YYYY-MM.",
            queries.read_journal,
            (
                Parameter("month", "string", None),
                Parameter("status", "string", None, STATUSES),
                Parameter("account", "integer", None),
                Parameter("text", "string", None),
                Parameter("limit", "integer", None, least=1),
            ),
        ),
        RpcCommand(
            "journal.balance",
            "The trial balance, or one account's balance.",
            queries.read_balances,
            (
                Parameter("account", "integer", None),
                Parameter("month", "string", None),
                Parameter("as_of", "string", None),
            ),
        ),
        RpcCommand("journal.check", "Every violation in the books; none is an empty list.", queries.read_violations),
        RpcCommand("accounts.list", "The chart of accounts.", queries.read_accounts),
        RpcCommand("primitives.list", "Every primitive a script may call.", queries.read_primitives),
        RpcCommand("period.list", "Every closing and reopening, oldest first.", queries.read_periods),
    )
}
