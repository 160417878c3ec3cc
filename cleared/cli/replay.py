"""``cleared replay RUN``: a past run once more, from what was recorded of it."""

from __future__ import annotations

import sys

import typer

from cleared.base.terminal import count_noun, print_json, print_line, print_message
from cleared.cli.options import JsonOption, RunArgument, WorkspaceOption, open_host
from cleared.gate.replay import replay_run


def replay_past_run(
    run_id: RunArgument,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Do a past run again, from its commit and what it was answered, and compare; nothing is kept.

    The script is the one of then, also where it was replaced since. Nothing of today's workspace is read. Exits 1 where
    it does not make the same calls and the same effects.
    """
    host = open_host(workspace)
    with host.keep_executor():
        found = replay_run(host, run_id)
    if json:
        print_json(found.to_dict())
    else:
        past = found.past
        for text in past.missing:
            print_message(f"not recorded: {text}")
        if found.diverges is not None:
            print_line(f"{past.run} diverges at {found.diverges['where']}")
            print_line(f"  recorded: {found.diverges['recorded']}")
            print_line(f"  replayed: {found.diverges['replayed']}")
            for path in found.differing:
                print_line(f"  {path} would be another")
        else:
            calls = f"the same {count_noun(found.calls, 'call')}" if past.calls is not None else "its calls not known"
            files = f"the same {count_noun(len(found.effects), 'changed file')}" if found.effects else "no effects"
            print_line(f"{past.run} ({past.agent}, {past.script.partition('@')[0]}): {calls}, {files}")
    if not found.is_same:
        sys.stdout.flush()
        raise typer.Exit(1)
