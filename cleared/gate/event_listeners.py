"""What comes of events that a change has its agent emit otherwise: who listens, and what they would do with them.

A listener's own text may stay as it is: what it does follows from what it is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from itertools import zip_longest
from pathlib import PurePosixPath
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from cleared.base.errors import ClearedError
from cleared.base.short_text import join_words
from cleared.gate.check_result import Subject
from cleared.gate.dry_run import DryRun, Setup, dry_run_script
from cleared.gate.impact import Impact, Names, group_effects, name_group
from cleared.gate.past_runs import DryRunInput
from cleared.git import Repository, Snapshot
from cleared.primitives.ctx import ORDER_EVENTS
from cleared.runs.approved_scripts import Scripts
from cleared.runs.attempt import Event
from cleared.sandbox.trigger_kinds import EVENT

_MOST_REHEARSED: Final = 20
"""Events of one agent that are tried on listeners; that there are more is said."""
_MOST_GROUPS: Final = 6


class Woken(Struct):
    """An agent that listens. ``impact``: what it would do with the events of both versions."""

    agent: str
    impact: Impact
    events: dict[str, None] = {}
    tried: set[str] = set()
    """Each difference once: all are rehearsed on today's books."""
    untried: int = 0
    """Events that are not rehearsed, and such that it cannot be run with."""


def find_woken(
    repo: Repository, snapshot: Snapshot, subject: Subject, inputs: DryRunInput, old: DryRun, new: DryRun, names: Names
) -> None:
    """Add to ``subject.woken`` what listeners would do with the events that differ between the two dry runs."""
    for name, before, after in _pair_events(old, new):
        for listener in _list_listeners(snapshot, subject.proposed_setup.scripts, name):
            woken = subject.woken.setdefault(listener, Woken(listener, Impact()))
            woken.events[name] = None
            difference = repr((name, before, after))
            if difference in woken.tried:
                continue
            woken.tried.add(difference)
            if woken.impact.runs + woken.untried >= _MOST_REHEARSED:
                woken.untried += 1
                continue
            setups = (subject.approved_setup, subject.proposed_setup)
            try:
                was, becomes = (
                    _rehearse(repo, snapshot, setup, listener, inputs, event)
                    for setup, event in zip(setups, (before, after), strict=True)
                )
            except ClearedError:
                woken.untried += 1
                continue
            occasion = replace(inputs, label=f"the event {name}")
            known = len(woken.impact.not_comparable)
            woken.impact.add_run(occasion, {}, was, becomes, names)
            woken.untried += len(woken.impact.not_comparable) - known


def describe_woken(subject: Subject) -> Iterator[str]:
    """Who is started by what the change emits otherwise, and what comes of it; a sentence each."""
    for woken in subject.woken.values():
        impact = woken.impact
        groups = [name_group(members) for members in group_effects(impact.entries)]
        said = [*groups[:_MOST_GROUPS], *([f"{len(groups) - _MOST_GROUPS} more kinds"] if groups[6:] else [])]
        said += [f"it fails over {each}" for each in impact.failed]
        others = dict.fromkeys(str(each["kind"]) for each in impact.outputs)
        said += [f"another {join_words([*others])}"] if others else []
        what = f"would do otherwise: {'; '.join(said)}" if said else "would do the same as before"
        if not impact.runs:
            what = "was not rehearsed with them"
        elif woken.untried:
            what += f" (not rehearsed with {woken.untried} more of them)"
        yield f"That wakes {woken.agent} ({join_words([*woken.events])}), which {what}."


def _pair_events(old: DryRun, new: DryRun) -> Iterator[tuple[str, Mapping[str, Any] | None, Mapping[str, Any] | None]]:
    """Those that differ: name, before, after. None: there is none."""
    names = dict.fromkeys(str(e["name"]) for e in (*old.events, *new.events) if e["name"] not in ORDER_EVENTS)
    for name in names:
        sides = ([event for event in run.events if event["name"] == name] for run in (old, new))
        yield from ((name, a, b) for a, b in zip_longest(*sides) if a != b)


def _list_listeners(snapshot: Snapshot, scripts: Scripts, event: str) -> Iterator[str]:
    """The agents that such an event starts, as they would be live."""
    folder = scripts.host.layout.agents_dir
    paths = {*(f"{folder}/{name}" for name in snapshot.list_folder(folder)), *scripts.texts}
    for path in sorted(p for p in paths if PurePosixPath(p).parent.as_posix() == folder and p.endswith(".py")):
        name = PurePosixPath(path).stem
        try:
            script = scripts.load_agent(name)
        except ClearedError:  # it is not approved, so nothing starts it
            continue
        header = script.header
        if header is None or EVENT.name not in header.triggers:
            continue
        if any(fnmatchcase(event, glob) for glob in header.event):
            yield name


def _rehearse(
    repo: Repository,
    snapshot: Snapshot,
    setup: Setup,
    listener: str,
    inputs: DryRunInput,
    event: Mapping[str, Any] | None,
) -> DryRun:
    """What the listener would do with the event on today's books; nothing where there is none."""
    label = f"the event {event['name']}" if event else ""
    nothing = DryRun(label, None, None, {}, (), ())
    if event is None:
        return nothing
    now = inputs.now or setup.host.clock.now()
    given = Event(EVENT.name, event["name"], event["payload"], f"{now:%Y%m%dT%H%M%SZ}-000000/{event['name']}", 1)
    try:
        script = setup.scripts.load_agent(listener)
    except ClearedError:  # it is as new as the change
        return nothing
    return dry_run_script(setup, repo, snapshot, script, label=label, inputs={}, now=now, event=given)
