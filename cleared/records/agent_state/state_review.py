"""What agents keep, where a run is taken back: its values go with it, and so does what read them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple, cast

from cleared.base.file_source import FileSource
from cleared.changes.record_sources import CommittedSource
from cleared.records.agent_state.staged_state import StagedState, agent_of, parse_state
from cleared.review.record_review import RecordReview, RevertCase


class _Change(NamedTuple):
    """A value that a commit changes. ``before`` and ``after``: its JSON; None: there was, or is, none."""

    agent: str
    key: str
    before: str | None
    after: str | None

    @property
    def id(self) -> str:
        return f"{self.agent}/{self.key}"


class StateReview(RecordReview):
    """Nobody decides about single values; they belong to their run."""

    record_kind: ClassVar = "kept value"

    def stage_revert(self, case: RevertCase) -> None:
        state = cast(StagedState, case.context.parts["state"])
        before, after = CommittedSource(case.before), CommittedSource(case.after)
        gone = 0
        for change in _list_changes(before, after, case.commit.files or ()):
            is_back = state.restore_value(change.agent, change.key, change.after, change.before)
            (case.run.voided if is_back else case.run.kept).append(change.id)
            gone += is_back
        if gone and not case.run.again:
            case.run.again.append(f"cleared agent run {case.run.agent}")

    def list_written(self, before: FileSource, after: FileSource, files: Collection[str]) -> Collection[str]:
        return [change.id for change in _list_changes(before, after, files)]

    def is_reading(self, source: FileSource, agent: str, call: Mapping[str, Any], record_id: str) -> bool | None:
        if call["name"] != "state_get":
            return None
        try:
            given = json.loads(call["arguments"])
            key = given["args"][0] if given["args"] else given["kwargs"]["key"]
        except (ValueError, KeyError, TypeError, IndexError):  # cut off
            return None
        return record_id == f"{agent}/{key}" or None


def _list_changes(before: FileSource, after: FileSource, files: Collection[str]) -> Iterator[_Change]:
    """Raises ``WorkspaceError`` where a file is damaged."""
    for path in sorted(files):
        if agent := agent_of(path):
            old, new = (parse_state(source.read(path), path) for source in (before, after))
            for key in sorted({*old, *new}):
                if old.get(key) != new.get(key):
                    yield _Change(agent, key, old.get(key), new.get(key))
