"""Reading the workspace: primitives, agents, records, runs. Projections of ``operations``, for a model to read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from cleared.base.json_arguments import ArgumentFault
from cleared.gate.lint_rules import RULES
from cleared.meta.tools.output_bounds import quote_data
from cleared.meta.tools.session_files import SessionFiles
from cleared.meta.tools.tool import Tool, ToolFailed, make_schema
from cleared.primitives.registry.projections import list_fields
from cleared.sandbox.trigger_kinds import ON_DEMAND
from cleared.service.operations.table import OPERATIONS

_OWN_TOOLS: Final = ("agent.", "run.", "primitives.")
"""What operations begin with that other tools answer."""
_OF_THE_TOOL: Final = ("what", "limit", "offset")
_MAX_ROWS: Final = 200
_DEFAULT_ROWS: Final = 50
_REVIEWED: Final = ("approved", "starter")
_AGENT_FACTS: Final = ("name", "title", "description", "trigger", "schedule", "watch", "event", "state")


class ReadingTools:
    """The reading tools over one session's workspace."""

    def __init__(self, files: SessionFiles) -> None:
        self._files, self._host = files, files.host

    def make_tools(self) -> list[Tool]:
        queries = _list_queries()
        limit = {"type": "integer", "minimum": 1, "maximum": _MAX_ROWS, "default": _DEFAULT_ROWS}
        return [
            Tool(
                "primitives",
                "The functions a script can call. With name: all about it, or about several with commas; rules: "
                "what the checks refuse.",
                make_schema(name={"type": "string", "maxLength": 500}),
                self._describe_primitives,
                cacheable=True,
            ),
            Tool(
                "agent_read",
                "The agents, and whether each is approved. With name: one agent's header, history and source, as your "
                "draft has it.",
                make_schema(name={"type": "string", "maxLength": 120}),
                self._read_agents,
                cacheable=True,
            ),
            Tool(
                "query",
                "Ask what is recorded, the review queue and the proposals. "
                + " ".join(f"{name}: {OPERATIONS[name].doc}" for name in queries),
                make_schema(
                    ("what",),
                    what={"type": "string", "enum": queries},
                    **_query_parameters(queries),
                    limit=limit,
                    offset={"type": "integer", "minimum": 0, "default": 0, "description": "Rows to pass over"},
                ),
                self._query_records,
                cacheable=True,
            ),
            Tool(
                "runs_read",
                "The newest runs of agents. With id: one run with every call.",
                make_schema(
                    id={"type": "string", "maxLength": 100},
                    agent={"type": "string", "maxLength": 120},
                    limit={**limit, "default": 20},
                ),
                self._read_runs,
            ),
        ]

    def _describe_primitives(self, arguments: Mapping[str, Any]) -> str:
        rows = OPERATIONS["primitives.list"].function(self._host)
        name = arguments["name"]
        if name == "rules":
            blocking = [rule for rule in RULES.values() if rule.blocks]
            return "\n".join(f"{rule.id}: {rule.finds.replace('``', '`')}" for rule in blocking)
        if not name:
            lines = [f"{p['name']}({', '.join(p['params']['properties'])}): {p['doc'].splitlines()[0]}" for p in rows]
            return "\n".join([*lines, "", "With name, all that is known about one of them."])
        found = {
            p["name"]: f"{p['signature']}\n\n{p['doc']}\n\neffect: {p['effect']}; grant: {p['grant']}" for p in rows
        }
        wanted = list(dict.fromkeys(each.strip() for each in name.split(",")))
        for each in wanted:
            if each not in found:
                raise ToolFailed(
                    f"there is no primitive {each[:80]!r}", "Call primitives without a name: it lists them."
                )
        fields = [f"{record}: {kept}" for record, kept in list_fields(self._host.registry, wanted).items()]
        return "\n\n".join([*(found[each] for each in wanted), *fields])

    def _read_agents(self, arguments: Mapping[str, Any]) -> str:
        name = arguments["name"]
        if name:
            return self._read_agent(name)
        lines = []
        drafted = {p for p in self._files.overlay.proposable_files if p.startswith("agents/")}
        for agent in OPERATIONS["agent.list"].function(self._host):
            if agent["state"] == "not committed":
                continue  # a working copy
            mark = "; changed in your draft" if agent["file"] in drafted else ""
            if agent["state"] in _REVIEWED:
                facts = f"{', '.join(agent['trigger']) or ON_DEMAND.name}; {agent['state']}{mark}"
                lines.append(f"{agent['name']} ({facts}): {' '.join(str(agent['description']).split())[:300]}")
            else:  # what it says of itself was read by nobody
                lines.append(f"{agent['name']} ({agent['state']}{mark})")
            drafted.discard(agent["file"])
        lines += [f"{path} (new in your draft)" for path in sorted(drafted)]
        return "\n".join(lines) or "There are no agents yet."

    def _read_agent(self, name: str) -> str:
        path = self._host.layout.agent_path(name)
        with self._files.open_commit():
            data = self._files.read_file(path)
            is_changed = path in self._files.list_changes()
            proposed = self._files.find_proposed(path)
        if data is None:
            raise ToolFailed(f"there is no approved agent {name!r}", "agent_read without a name lists the agents.")
        facts = {"file": path, "source": "your draft" if is_changed else "as approved"}
        if proposed is not None:
            facts["source"] = f"as {proposed.id} proposes it, which waits for the owner"
        known = [a for a in OPERATIONS["agent.list"].function(self._host) if a["name"] == name]
        if known and known[0]["state"] in _REVIEWED and not is_changed and proposed is None:
            facts |= {key: known[0][key] for key in _AGENT_FACTS if known[0][key]}
        lines = [f"{key}: {value if isinstance(value, str) else ', '.join(value)}" for key, value in facts.items()]
        if known:
            history = OPERATIONS["agent.history"].function(self._host, name)[-5:]
            rows = [json.dumps(row, ensure_ascii=False, default=str) for row in history]
            lines += [quote_data("\n".join(rows), "its history")] if rows else []
        source = data.decode("utf-8", "replace").rstrip("\n").split("\n")
        text = "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(source, 1))
        return "\n".join([*lines, "", quote_data(text, proposed.id) if proposed is not None else text])

    def _query_records(self, arguments: Mapping[str, Any]) -> str:
        what = arguments["what"]
        operation = OPERATIONS[what]
        names = {p.name for p in operation.parameters}
        given = {k: v for k, v in arguments.items() if k not in _OF_THE_TOOL and v is not None}
        for key in given:
            if key not in names:
                raise ArgumentFault(f"{what} takes no {key}; it takes {', '.join(sorted(names)) or 'nothing else'}")
        found = operation.call_function(self._host, given)
        if not isinstance(found, list):
            return quote_data(json.dumps(found, ensure_ascii=False, indent=1, default=str), what)
        page = arguments["limit"], arguments["offset"]
        return _quote_rows(found, *page, what, shows_last=operation.is_oldest_first, write_line=operation.write_line)

    def _read_runs(self, arguments: Mapping[str, Any]) -> str:
        if arguments["id"]:
            run = OPERATIONS["run.show"].function(self._host, arguments["id"])
            calls = run.pop("calls", [])
            rows = [json.dumps(run, ensure_ascii=False, default=str)]
            rows += [json.dumps(call, ensure_ascii=False, default=str) for call in calls]
            return quote_data("\n".join(rows), f"the run, and its {len(calls)} calls")
        rows = OPERATIONS["run.list"].function(self._host, arguments["limit"], arguments["agent"] or None)
        return _quote_rows(rows, arguments["limit"], 0, "runs")


def _list_queries() -> list[str]:
    """The operations that read, but for what other tools answer."""
    return [name for name, each in OPERATIONS.items() if each.effect == "read" and not name.startswith(_OWN_TOOLS)]


def _query_parameters(queries: Sequence[str]) -> dict[str, Any]:
    """The parameters of all queries together; which query takes which is in their texts."""
    found: dict[str, Any] = {}
    users: dict[str, list[str]] = {}
    for name in queries:
        for parameter in OPERATIONS[name].parameters:
            if parameter.name == "limit":
                continue
            users.setdefault(parameter.name, []).append(name)
            schema = dict(parameter.json_schema)
            schema.pop("default", None)
            if parameter.name in found and "enum" in schema and schema["enum"] != found[parameter.name].get("enum"):
                values = dict.fromkeys([*found[parameter.name].get("enum", ()), *schema["enum"]])
                schema["enum"] = [value for value in values if value is not None] + [None]
                schema["type"] = ["string", "null"]
            found[parameter.name] = schema | {"description": parameter.doc}
    for name, schema in found.items():
        schema["description"] = f"For {', '.join(users[name])}. {schema['description']}"
    return found


def _quote_rows(
    rows: list[Any],
    limit: int,
    offset: int,
    what: str,
    *,
    shows_last: bool = False,
    write_line: Callable[[Any], str] | None = None,
) -> str:
    """A page of the rows, and how to get the next one. ``shows_last``: pages go from the last rows to the first."""
    if not rows:
        return f"{what}: none."
    if offset >= len(rows):
        raise ToolFailed(f"{what} has {len(rows)} rows; there are none after offset {offset}", "Give a smaller offset.")
    last = len(rows) - offset if shows_last else min(offset + limit, len(rows))
    first = max(0, last - limit) if shows_last else offset
    shown = rows[first:last]
    part = "" if len(shown) == len(rows) else f" of {len(rows)} ({first + 1} to {last})"
    rest = first if shows_last else len(rows) - last
    more = f" Narrow the query, or go on with offset={offset + len(shown)}." if rest else ""
    text = "\n".join(map(write_line or _write_json, shown))
    return f"{what}: {len(shown)}{part}.{more}\n{quote_data(text, what)}"


def _write_json(row: Any) -> str:
    """A row without what it does not have: a model pays for each word of it."""
    kept = {k: v for k, v in row.items() if v not in (None, "", [], {})} if isinstance(row, dict) else row
    return json.dumps(kept, ensure_ascii=False, default=str)
