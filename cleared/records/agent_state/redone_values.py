"""What a run or a decision had an agent keep, done again beside what the agent keeps by what others did."""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

from cleared.base.file_source import FileSource
from cleared.domains.renamed_records import RenamedRecords, WorkConflict
from cleared.primitives.context import Context
from cleared.records.agent_state.staged_state import FOLDER, StagedState, agent_of, parse_state


def redo_values(context: Context, before: FileSource, after: FileSource, renamed: RenamedRecords) -> Collection[str]:
    """See ``Domain.redo``."""
    done = []
    for path in sorted({*before.list_paths(FOLDER), *after.list_paths(FOLDER)}):
        agent, data = agent_of(path), after.read(path)
        if not agent or data is None or before.read(path) == data:
            continue
        state = cast(StagedState, context.parts["state"])
        old, new, there = (parse_state(source.read(path), path) for source in (before, after, state.source))
        for key in sorted({*old, *new}):
            if old.get(key) == new.get(key) or there.get(key) == new.get(key):
                continue
            if not state.restore_value(agent, key, old.get(key), new.get(key)):
                raise WorkConflict(f"{agent} keeps something else under {key[:60]!r} there")
        done.append(path)
    return done
