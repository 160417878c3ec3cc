"""Shadows: a proposed version runs beside the live one on every real event, and nothing of it is kept.

After each run of the agent both versions are rehearsed over what that run had: its books, files, event and clock. A
rehearsal asks nobody, sends nothing and spends nothing. What came of it lies in ``.cleared/``, of this machine alone:
it is told beside the proposal, and decides nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict

from cleared.base.clock import format_iso
from cleared.base.errors import BusyError, ClearedError, PolicyError, UsageError
from cleared.base.safe_files import write_atomic
from cleared.base.terminal import count_noun
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.domains.installed_domains import name_references
from cleared.gate.change_rehearsal import rehearse_run
from cleared.gate.dry_run import compare_dry_runs
from cleared.gate.impact import Impact
from cleared.gate.past_runs import DryRunInput, find_past_run
from cleared.gate.proposals.proposal import Proposal, find_proposal, load_proposals, must_be_open
from cleared.gate.static_checks import check_unapproved
from cleared.git import Repository, Snapshot
from cleared.runs.approved_scripts import Scripts
from cleared.runs.attempt import parse_event
from cleared.trust.approval_record import digest_of
from cleared.trust.person_only import refuse_in_job
from cleared.workspace.lock import writer_lock

_MAX_KEPT: Final = 500
"""Runs of one shadow that are kept one by one; of more the numbers only."""
_MAX_AT_ONCE: Final = 20
"""Runs that are gone through after one run, where many were missed."""


class Shadow(Struct):
    """A proposal that runs beside what is live. ``texts``: its files, path → digest (empty: removed)."""

    proposal: str
    agents: list[str]
    texts: dict[str, str]
    started: str
    until: str
    ended: str = ""
    """Why it is over; empty while it goes on."""
    compared: int = 0
    same: int = 0
    differing: list[dict[str, Any]] = []
    """The runs in which it would have done something else: run, time, and what, one sentence each."""
    seen: list[str] = []
    """The runs that were gone through."""

    def to_dict(self) -> dict[str, Any]:
        data = asdict(self)
        del data["seen"], data["texts"]
        return data | {"agreement": round(self.same / self.compared, 4) if self.compared else None}


def start_shadow(host: Host, text: str, days: int) -> Shadow:
    """Have an open proposal run beside what is live, for so many days. Where it does already, it goes on until then.

    Raises ``UsageError`` where there is no such proposal or it changes no agent that is live, ``PolicyError`` where it
    is not open, does not pass the static checks, or inside a job.
    """
    refuse_in_job()
    with host.open_last_commit() as snapshot:
        proposal = find_proposal(load_proposals(CommittedSource(snapshot)), text)
        must_be_open(proposal)
        if proposal.changed_file():
            raise PolicyError(f"{proposal.id} is not what was proposed", remedy="Propose again: cleared agent propose.")
        folder = f"{host.layout.agents_dir}/"
        names = [p.removeprefix(folder).removesuffix(".py") for p in proposal.paths if p.startswith(folder)]
        live = [name for name in names if snapshot.read_file(host.layout.agent_path(name)) is not None]
    if not live:
        raise UsageError(
            f"{proposal.id} changes no agent that is live, so there is nothing to run it beside",
            remedy="A new agent is tried with: cleared agent run NAME --dry-run.",
        )
    for name in live:
        check_unapproved(host, name, proposal.texts)
    with _hold(host, host.config.lock.wait_seconds):
        shadows, now = read_shadows(host), host.clock.now()
        shadow = shadows.get(proposal.folder) or Shadow(proposal.folder, live, _digests(proposal), format_iso(now), "")
        shadow.until, shadow.ended = format_iso(now + timedelta(days=days)), ""
        _write(host, {**shadows, proposal.folder: shadow})
    return shadow


def stop_shadow(host: Host, text: str) -> Shadow:
    """End a shadow; what it has shown stays. Raises ``UsageError`` where there is none."""
    with _hold(host, host.config.lock.wait_seconds):
        shadows = read_shadows(host)
        found = [each for name, each in shadows.items() if name == text or name.partition("-")[0] == text.upper()]
        if len(found) != 1:
            raise UsageError(f"{text!r} runs beside nothing", remedy="cleared agent shadow status shows what does.")
        found[0].ended = found[0].ended or "stopped"
        _write(host, shadows)
    return found[0]


def read_shadows(host: Host) -> dict[str, Shadow]:
    """The shadows of this machine, by the folder of their proposal; where the file is damaged none, which is said."""
    try:
        data = json.loads((host.root / host.layout.shadows).read_bytes())
        return {folder: Shadow(**each) for folder, each in data.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError):
        host.show_message(
            f"{host.layout.shadows} is damaged: what ran beside live versions is not known any more. Begin again: "
            "cleared agent shadow start PROPOSAL."
        )
        return {}


def describe_shadow(shadow: Shadow) -> Iterator[str]:
    """What a shadow has shown, one line each."""
    state = shadow.ended or f"until {shadow.until[:10]}"
    share = f"{100 * shadow.same / shadow.compared:.1f} %" if shadow.compared else "nothing to compare yet"
    yield f"Beside the live version since {shadow.started[:10]}, {state}"
    yield f"The same in {shadow.same} of {count_noun(shadow.compared, 'run')}: {share}"
    if shadow.differing:
        yield "Where they differ, the live version first:"
    for each in shadow.differing:
        yield f"{each['run']} of {each['at']}: {'; '.join(each['what'])}"


def run_shadows(host: Host, agent: str) -> None:
    """Go through the runs of an agent that its shadows have not seen. What keeps them from it is kept with them; where
    another process is at it, or nothing can be written, the next run has these gone through, too."""
    with suppress(BusyError), _hold(host, 0.0):
        shadows = read_shadows(host)
        for shadow in shadows.values():
            if shadow.ended or agent not in shadow.agents:
                continue
            try:
                with host.open_for_reading() as repo:
                    _follow(host, repo, shadow, agent)
            except ClearedError as error:
                shadow.ended = f"it could not go on: {error.message}"
            try:
                _write(host, shadows)
            except ClearedError as error:  # the run itself is committed
                host.show_message(f"what runs beside {agent} could not be written down: {error}")


def _follow(host: Host, repo: Repository, shadow: Shadow, agent: str) -> None:
    snapshot = Snapshot(repo, repo.read_head())
    proposal = find_proposal(load_proposals(CommittedSource(snapshot)), shadow.proposal)
    if proposal.status != "open":
        shadow.ended = f"it was {proposal.status}"
        return
    if _digests(proposal) != shadow.texts or proposal.changed_file():
        shadow.ended = "the proposal is another one by now"
        return
    names = name_references(host.layout, CommittedSource(snapshot))
    live, proposed = Scripts(host, snapshot), Scripts(host, snapshot, texts=proposal.texts)
    for run, occasion in _list_new(host, repo, shadow, agent):
        old, new = (rehearse_run(host, repo, scripts, agent, occasion) for scripts in (live, proposed))
        impact = Impact()
        impact.add_run(occasion, {}, old, new, names)
        what = [_describe_difference(each) for each in impact.entries]
        told = {f"{noun} differ" for noun in impact.records} if what else set()
        what += [each for each in compare_dry_runs(old, new) if each not in told]
        shadow.seen = [*shadow.seen, run][-2 * _MAX_KEPT :]
        shadow.compared += 1
        shadow.same += not what
        if what and len(shadow.differing) < _MAX_KEPT:
            shadow.differing.append({"run": run, "at": format_iso(occasion.now or host.clock.now()), "what": what})
    if host.clock.now() >= datetime.fromisoformat(shadow.until):
        shadow.ended = "its time is over"


def _list_new(host: Host, repo: Repository, shadow: Shadow, agent: str) -> Iterator[tuple[str, DryRunInput]]:
    """The runs since it started that it has not seen, oldest first, with what they had."""
    traces = host.traces.list_runs(_MAX_AT_ONCE, agent)
    for trace in reversed(traces):
        run, at = str(trace["id"]), str(trace["started_at"])
        if trace["dry_run"] or trace["status"] == "running" or run in shadow.seen or not shadow.started <= at:
            continue
        if at > shadow.until:
            continue
        past = find_past_run(host, repo, agent, run) if trace["commits"] else None
        if past is None and trace["head"] and repo.has_in_history(trace["head"]):
            base, now = Snapshot(repo, trace["head"]), datetime.fromisoformat(at)
            past = DryRunInput(f"run {run}", base, {}, now, parse_event(trace["event"]))
        if past is not None:
            yield run, past


def _describe_difference(entry: Mapping[str, Any]) -> str:
    words = " ".join(str(entry.get(name) or "") for name in ("date", "description", "amount")).strip()
    how, was, becomes = (str(entry.get(name) or "") for name in ("group", "was", "becomes"))
    how = f"{how}: {was} → {becomes}" if was and becomes and "→" not in how else how or str(entry["change"])
    return f"{words}: {how}"[:300]


def _digests(proposal: Proposal) -> dict[str, str]:
    return {path: "" if text is None else digest_of(text) for path, text in proposal.texts.items()}


def _hold(host: Host, seconds: float) -> AbstractContextManager[None]:
    """So that of two who read and write what shadows have seen, none loses what the other has. Raises ``BusyError``."""
    return writer_lock(host.layout.state_dir, seconds, "agent shadow", clock=host.clock, name="shadow.lock")


def _write(host: Host, shadows: Mapping[str, Shadow]) -> None:
    """All of them at once: killed before, the runs are gone through again; after, they are seen."""
    data = {folder: asdict(shadow) for folder, shadow in shadows.items()}
    write_atomic(host.root / host.layout.shadows, json.dumps(data, ensure_ascii=False, indent=1).encode("utf-8"))
