"""The operations as tools. Nothing here knows the protocol; names have ``_`` where operations have a dot."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, Final

from msgspec import Struct

from cleared.api.mcp_server.bounded_answer import clean_text, make_answer
from cleared.base.errors import ClearedError, PolicyError, UsageError
from cleared.changes.host import Host
from cleared.domains.installed_domains import DomainTable
from cleared.gate.operation import InvalidArgument, Operation
from cleared.service.operations.current_host import CurrentHost
from cleared.service.operations.table import OPERATIONS

ExplainFault = Callable[[BaseException], ClearedError | None]
"""The refusal that an exception is; None for a mistake of this program."""

TOOLS: Final[Mapping[str, Operation]] = DomainTable(
    lambda: {name.replace(".", "_"): o for name, o in OPERATIONS.items()}
)
DECISIONS: Final = (
    "approve",
    "reject",
    "answer",
    "trust",
    "confirm",
    "correct",
    "set",
    "close",
    "reopen",
    "void",
    "rollback",
    "undo",
)
"""Words for what a client may ask for and never gets: a person does that."""
_MAX_CLIENT_NAME: Final = 40


class ToolReply(Struct, frozen=True):
    """``data`` is the answer; a refusal has none, and its ``text`` says cause and remedy."""

    data: dict[str, Any] | None = None
    text: str = ""


class WorkspaceTools:
    """Calls tools over one workspace. Thread-safe."""

    def __init__(self, current: CurrentHost, explain_fault: ExplainFault) -> None:
        self.current = current
        self._explain_fault = explain_fault

    def list_tools(self) -> ToolReply:
        """The names of the tools that are offered under the settings in force."""
        return self.answer(lambda host: [n for n, o in TOOLS.items() if o.effect != "run" or host.config.mcp.allow_run])

    def call_tool(self, name: str, arguments: Mapping[str, Any], client: str) -> ToolReply:
        """The reply to a call. Never raises for what a client or the workspace can cause. ``client``: what it calls
        itself."""
        return self.answer(lambda host: self._call_operation(host, name, arguments, client))

    def answer(self, question: Callable[[Host], Any]) -> ToolReply:
        """What ``question`` gives over the workspace as it is now; a refusal where it raises one."""
        host = None
        try:
            host = self.current.open_host()
            return ToolReply(make_answer(host, question(host)))
        except Exception as error:  # noqa: BLE001  (a client sees a sentence, and the next call is served)
            refusal = self._explain_fault(error)
            text = str(refusal) if refusal is not None else f"this is a mistake of cleared: {type(error).__name__}"
            if host is None:
                return ToolReply(text=text.encode("utf-8", "replace").decode("utf-8"))
            if refusal is None:
                host.show_message(f"a call failed by a mistake of cleared: {type(error).__name__}: {str(error)[:500]}")
            return ToolReply(text=clean_text(host, text))

    def _call_operation(self, host: Host, name: str, arguments: Mapping[str, Any], client: str) -> Any:
        operation = TOOLS.get(name)
        if operation is None:
            raise _unknown_tool(name)
        if operation.effect == "run" and not host.config.mcp.allow_run:
            raise PolicyError(
                "clients may not run agents here (mcp.allow_run is off)",
                remedy="agent_dry_run shows what a run would do. A person may allow runs: "
                "cleared config set mcp.allow_run true.",
            )
        try:
            return operation.call_function(host, arguments, author=f"mcp:{client_name(client)}")
        except InvalidArgument as error:
            remedy = error.remedy or f"tools/list describes {name}."
            raise UsageError(error.message.replace(operation.name, name), remedy=remedy) from None


def client_name(given: str) -> str:
    """What a client calls itself, as one short word that can be seen; ``unknown`` where nothing of it is left."""
    shown = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in given[:1_000].strip())
    return shown[:_MAX_CLIENT_NAME].strip("-") or "unknown"


def _unknown_tool(name: str) -> ClearedError:
    shown = "".join(c if c.isprintable() else "?" for c in name[:60])
    if any(word in name.lower() for word in DECISIONS):
        return PolicyError(
            f"there is no tool {shown!r}: deciding is for a person",
            remedy="Propose it (agent_propose), or tell the person which command decides: see cleared --help.",
        )
    near = get_close_matches(name[:80], TOOLS, n=1)
    return UsageError(
        f"there is no tool {shown!r}", remedy=f"Did you mean {near[0]}?" if near else "tools/list names them."
    )
