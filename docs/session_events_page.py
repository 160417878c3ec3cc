"""The generated page about the events of sessions, from their schema."""

from __future__ import annotations

from typing import Any

from cleared.meta.session_events import SCHEMA_FILE, read_event_schema

COMMON = ("type", "session", "seq", "time")


def session_events(note: str) -> str:
    """Every type of event with its fields."""
    schema = read_event_schema()
    first = schema["oneOf"][0]["properties"]
    out = [
        "# Events of a session",
        "",
        note,
        "",
        "What a session does is told in events, one JSON object a line, in the order in which it happens: on stdout",
        "with `--jsonl`, and (but for `message.delta`) in `.cleared/sessions/SESSION/events.jsonl`.",
        f"`cleared/meta/{SCHEMA_FILE.name}` is their JSON Schema. A session that is resumed begins with another",
        "`session.started`; the last event of each start is `session.ended`.",
        "",
        "Every event has `type` and",
        "",
        *(f"- `{name}`: {first[name]['description']}" for name in COMMON[1:]),
        "",
    ]
    for event in schema["oneOf"]:
        out += [f"## {event['title']}", "", event["description"], "", "| field | type | what |", "|---|---|---|"]
        for name, rules in event["properties"].items():
            if name not in COMMON:
                out.append(f"| `{name}` | {_name_type(rules)} | {rules.get('description', '')} |")
        out.append("")
    return "\n".join(out).rstrip() + "\n"


def _name_type(rules: dict[str, Any]) -> str:
    if "enum" in rules:
        return ", ".join(f"`{value}`" for value in rules["enum"])
    if rules.get("type") == "object":
        return "object: " + ", ".join(f"`{name}`" for name in rules["properties"])
    kind = rules["type"]
    return " or ".join(kind) if isinstance(kind, list) else str(kind)
