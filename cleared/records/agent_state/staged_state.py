"""The values that agents keep, as of one commit, and what a run stages on its own agent's."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, cast

from cleared.base.errors import Place, PrimitiveError, RestoreRemedy, WorkspaceError
from cleared.base.file_source import FileSource
from cleared.base.json_values import from_wire, to_wire
from cleared.base.terminal import count_noun
from cleared.domains.domain import DraftDescription, Opening, Staged
from cleared.domains.record_audit import RecordAudit, Violation, describe_error
from cleared.domains.record_comparison import Record, RecordComparison, RecordSummary
from cleared.git import Snapshot
from cleared.primitives.context import Context

FOLDER: Final = "state"
MAX_BYTES: Final = 65_536
"""Of all that one agent keeps."""
MAX_KEYS: Final = 200
_SUFFIX: Final = ".json"
_MAX_KEY: Final = 100


class StagedState(Staged):
    """Nothing is read before a script asks. Values are held as their JSON."""

    def __init__(self, source: FileSource) -> None:
        self.source = source
        self.agent = ""
        self.kept: dict[str, str] | None = None
        """What the agent keeps, as the commit has it."""
        self.changed: dict[str, str | None] = {}
        """Key → the JSON of its value; None: it goes."""
        self.restored: dict[str, dict[str, str]] = {}
        """Agent → all that it keeps, where a decision puts back values of it."""

    def restore_value(self, agent: str, key: str, now: str | None, text: str | None) -> bool:
        """Stage that an agent keeps this under a key (None: nothing), where it is ``now`` as said; whether it is.
        Raises ``WorkspaceError`` where its file is damaged."""
        path = state_path(agent)
        kept = self.restored.get(agent)
        kept = parse_state(self.source.read(path), path) if kept is None else kept
        if kept.get(key) != now:
            return False
        self.restored[agent] = {
            **{name: each for name, each in kept.items() if name != key},
            **({key: text} if text else {}),
        }
        return True

    def open_of(self, agent: str) -> None:
        """Read what an agent keeps: the one whose run this is. Raises ``PrimitiveError`` where its file is damaged."""
        if self.kept is None:
            self.agent = agent
            path = state_path(agent)
            try:
                self.kept = parse_state(self.source.read(path), path)
            except WorkspaceError as error:
                raise PrimitiveError(error.message, place=error.place, remedy=error.remedy) from None

    @property
    def current(self) -> dict[str, str]:
        """What is kept, with the draft."""
        both = {**(self.kept or {}), **self.changed}
        return {key: both[key] or "" for key in sorted(both) if both[key] is not None}

    def set_value(self, key: str, text: str | None) -> bool:
        """Stage the JSON of a value (None: it goes); whether that changes anything. Raises ``PrimitiveError`` where it
        would be too much."""
        if self.current.get(key) == text:
            return False
        before = dict(self.changed)
        self.changed[key] = text
        if (self.kept or {}).get(key) == text:
            del self.changed[key]
        size = sum(len(name.encode()) + len(value) for name, value in self.current.items())
        if len(self.current) > MAX_KEYS or size > MAX_BYTES:
            self.changed = before
            raise PrimitiveError(
                f"an agent keeps at most {MAX_KEYS} values, and {MAX_BYTES >> 10} kB in all",
                place=Place(field="value"),
                remedy="Keep less of it, or put it into a table (table_put).",
            )
        return True

    @property
    def has_changes(self) -> bool:
        return bool(self.changed or self.restored)

    def draft_key(self) -> object:
        return tuple(self.changed.items()), tuple((agent, tuple(kept.items())) for agent, kept in self.restored.items())

    def describe_draft(self) -> DraftDescription:
        return DraftDescription(
            {
                f"{self.agent}/{key}": {
                    "agent": self.agent,
                    "key": key,
                    "before": _parse_value((self.kept or {}).get(key)),
                    "after": _parse_value(text),
                }
                for key, text in sorted(self.changed.items())
            }
        )

    def find_violations(self) -> list[Violation]:
        return [each for path, data in self.render_files("").items() for each in check_file(path, data)]

    def render_files(self, run_id: str) -> Mapping[str, bytes | None]:
        files = {state_path(agent): render_state(kept) for agent, kept in self.restored.items()}
        return files | ({state_path(self.agent): render_state(self.current)} if self.changed else {})


def open_state(opening: Opening) -> StagedState:
    """What agents keep as of a commit, with nothing staged."""
    return StagedState(opening.source)


def state_of(context: Context) -> StagedState:
    """What the agent of a run keeps."""
    state = cast(StagedState, context.parts["state"])
    state.open_of(context.agent)
    return state


def agent_of(path: str) -> str:
    """Whose file is at a path; empty where that is none."""
    name = path.removeprefix(f"{FOLDER}/")
    return name.removesuffix(_SUFFIX) if path != name and name.endswith(_SUFFIX) else ""


def state_path(agent: str) -> str:
    return f"{FOLDER}/{agent}{_SUFFIX}"


def parse_state(data: bytes | None, path: str) -> dict[str, str]:
    """Key → the JSON of its value. Raises ``WorkspaceError`` for anything that this program does not write."""
    if data is None:
        return {}
    try:
        values = json.loads(data.decode("utf-8"))
        kept = {key: json.dumps(value, sort_keys=True) for key, value in values.items()}
        if render_state(kept) != data or not all(is_key(key) for key in kept):
            raise ValueError("it is not as cleared writes it")
        for value in values.values():
            from_wire(value)
    except (ValueError, AttributeError, RecursionError) as error:
        remedy = RestoreRemedy(path, "Or delete it in a commit: the agent begins anew then")
        raise WorkspaceError(f"what the agent keeps is damaged: {error}", place=Place(path), remedy=remedy) from None
    return kept


def render_state(kept: Mapping[str, str]) -> bytes:
    """The file of these values, one a line."""
    lines = ",\n".join(f" {json.dumps(key)}: {kept[key]}" for key in sorted(kept))
    return f"{{\n{lines}\n}}\n".encode("ascii") if lines else b"{}\n"


def is_key(text: str) -> bool:
    """Whether a text can name a value."""
    return 0 < len(text) <= _MAX_KEY and text.isprintable() and text == text.strip()


def encode_value(value: Any) -> str:
    """The JSON of a value."""
    return json.dumps(to_wire(value), sort_keys=True)


def _parse_value(text: str | None) -> Any:
    return json.loads(text) if text is not None else None


def decode_value(text: str) -> Any:
    """The value of its JSON."""
    return from_wire(json.loads(text))


def check_file(path: str, data: bytes | None) -> list[Violation]:
    """What is wrong with the file of an agent's values."""
    try:
        kept = parse_state(data, path)
    except WorkspaceError as error:
        return [describe_error(error, "state")]
    if len(kept) > MAX_KEYS or sum(len(key.encode()) + len(text) for key, text in kept.items()) > MAX_BYTES:
        return [Violation("state", "the agent keeps more than it may", f"Shorten {path}.", Place(path))]
    return []


def list_checks() -> Mapping[str, str]:
    """What holds of what agents keep."""
    return {"state": "What an agent keeps is as cleared writes it, and no more than it may be."}


def describe_value_schema() -> Mapping[str, Any]:
    """JSON Schema of a value that a draft keeps."""
    text: dict[str, Any] = {"type": "string"}
    properties = {"agent": text, "key": text, "before": {}, "after": {}}
    return {"type": "object", "properties": properties, "required": sorted(properties), "additionalProperties": False}


class StateComparison(RecordComparison):
    """Values are paired by agent and key."""

    shown_fields: ClassVar = frozenset(("value",))

    def summarise(self, record: Record) -> RecordSummary:
        return RecordSummary(f"{record['agent']}/{record['key']}", f"keeps {record['key']}")

    def flatten(self, record: Record) -> Mapping[str, Any]:
        return {"value": json.dumps(record["after"], sort_keys=True)[:200]}


def count_values(records: Iterable[Record]) -> str:
    """How many values change, in words."""
    return count_noun(len(list(records)), "kept value")


class StateAudit(RecordAudit):
    """Judges what agents keep."""

    def check_records(self, source: FileSource, commit: Snapshot | None = None) -> list[Violation]:
        paths = [path for path in source.list_paths(FOLDER) if path.endswith(_SUFFIX)]
        return [violation for path in paths for violation in check_file(path, source.read(path))]

    @property
    def folders(self) -> Sequence[str]:
        return (FOLDER,)

    def is_record_file(self, path: str) -> bool:
        return path.startswith(f"{FOLDER}/")

    def list_fixed_rows(self, path: str, data: bytes) -> list[bytes]:
        return []
