"""The generated page about jobs: the job types as they are declared, the files as their schemas have them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, get_args

_TIME, _JOB = "UTC, ISO 8601", "a job's id"
_WORDS: Final = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "null": "null",
    "array": "list",
    "object": "object",
}
_ELSEWHERE: Final = {("tree", "state"): "as `single_agent_state.json`"}


def jobs(note: str) -> str:
    """Every built-in job type, and every field of the loop's files."""
    from cleared.jobs import file_schemas
    from cleared.jobs.job_types import load_built_in
    from cleared.workspace.settings.model import Config

    turn = Config().loop.rotation
    out = [
        "# Jobs",
        "",
        note,
        "",
        "[Run jobs](../work/jobs.md) says how they are used, [add a job type](../howto/add-a-job-kind.md) how",
        "to have more of them. Paths are below the workspace; what is forbidden to jobs is in none of them.",
        "",
        "## Job types",
        "",
        "| job type | what it does | target | reads | writes | limit | output | turn |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for kind in load_built_in().values():
        reads = [*kind.reads, *([f"loop.{kind.reads_setting}"] if kind.reads_setting else [])]
        place = f"{turn.index(kind.name) + 1}" if kind.name in turn else "" if kind.rotates else "never"
        out.append(
            f"| `{kind.name}` | {kind.about} | {'' if kind.target == 'none' else kind.target} | {_paths(reads)} | "
            f"{_paths(kind.writes)} | {kind.timeout:g} s | {kind.max_output // 1024} kB | {place} |"
        )
    out += [
        "",
        "*turn*: the place in the rotation as shipped; where there is none, `loop.rotation` may name it. `.` is",
        "the workspace. Every job may also write a folder of its own for temporary files. `ai_cycle` has no fence",
        "but that of its [engine](../work/cycles.md); its limit is `loop.ai.cycle_timeout_seconds` and 900 s.",
        "",
        "## Files",
        "",
        "JSON, checked against these schemas (draft 7, `cleared/jobs/schemas/`) whenever the loop writes or reads one.",
        "No file has a field that is not listed. Lists are oldest first.",
    ]
    for name in get_args(file_schemas.SchemaName):
        found = file_schemas.load_schema(name)
        file, _, about = found["description"].partition(": ")
        out += ["", f"### {found['title']}", "", f"`{file}`: {about}", "", "| field | value |", "|---|---|"]
        out += [f"| `{path}` | {value} |" for path, value in _fields(found, "", name)]
    return "\n".join(out) + "\n"


def _paths(paths: Any) -> str:
    return ", ".join(f"`{path}`" for path in paths)


def _fields(found: Mapping[str, Any], path: str, name: str) -> Iterator[tuple[str, str]]:
    for key, value in found.get("properties", {}).items():
        here = f"{path}{key}"
        if (name, here) in _ELSEWHERE:
            yield here, _ELSEWHERE[name, here]
            continue
        text = _value(value)
        said = value.get("description")
        yield here, (f"{text}; {said}" if said else text).replace("|", "\\|")
        for inner, more in _inside(value):
            yield from _fields(inner, f"{here}{more}.", name)


def _inside(value: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], str]]:
    for one in value.get("anyOf", [value]):
        if "properties" in one:
            yield one, ""
        elif "properties" in one.get("items", {}):
            yield one["items"], "[]"


def _value(value: Mapping[str, Any]) -> str:
    if "const" in value:
        return f"`{value['const']}`"
    if "enum" in value:
        return ", ".join("null" if v is None else f"`{v}`" for v in value["enum"])
    if "anyOf" in value:
        return " or ".join(_value(one) for one in value["anyOf"])
    pattern = value.get("pattern", "")
    if pattern.startswith("^[0-9]{4}-"):
        return _TIME
    if pattern.startswith("^job_"):
        return _JOB
    text = _WORDS[value["type"]]
    if value["type"] == "array" and "type" in value.get("items", {}) and "properties" not in value["items"]:
        text += f" of {_value(value['items'])}"
    bounds = [f"at least {value['minimum']}"] if "minimum" in value else []
    bounds += [f"at most {value['maxLength']} characters"] if "maxLength" in value else []
    bounds += [f"at most {value['maxItems']}"] if "maxItems" in value else []
    digits = re.fullmatch(r"\^\[0-9a-f\]\{(\d+)\}\$", pattern)
    bounds += [f"{digits[1]} hexadecimal digits"] if digits else []
    return text + (f", {', '.join(bounds)}" if bounds else "")
