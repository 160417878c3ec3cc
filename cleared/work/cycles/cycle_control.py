"""Looking at the loop of cycles and steering it from another process."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Literal

from cleared.base.clock import format_iso
from cleared.base.safe_files import write_atomic
from cleared.changes.host import Host
from cleared.work.cycles import cycle_state
from cleared.work.cycles.consensus import CONSENSUS, INITIAL, ConsensusFile
from cleared.work.cycles.cycle_log import CYCLE_LOG, list_cycle_logs
from cleared.work.cycles.engine_policy import Spending, read_spending, reset_spending

_STOP_SECONDS: Final = 10.0


def read_status(root: Path) -> dict[str, Any]:
    """The state, with what engines have used by now, ``stopped`` where its process has died, and ``paused`` where the
    next cycle may not start."""
    state = cycle_state.read_state(root) | read_spending(root).to_state()
    if cycle_state.waits_in_queue(state) and (root / cycle_state.PAUSE_FILE).exists():
        state["status"] = "paused"
    elif cycle_state.has_died(root, state):
        reason = f"its process died while it was {state['status']}"
        state |= {"status": "stopped", "pid": None, "pid_started": None, "until": None, "reason": reason}
    return state


def stop_loop(host: Host, *, now: bool) -> str:
    """Stop the loop after its cycle, or ``now``; what was done, in words.

    Raises ``BusyError`` where it has not ended ten seconds after it was told to end now.
    """
    state = cycle_state.read_state(host.root)
    if cycle_state.waits_in_queue(state) and end_waiting(host, "stopped", "it was stopped"):
        return "No cycle ran; the one that waited in the queue of cleared loop does not begin."
    runner = cycle_state.cycles_of(host.root)
    ending = runner.ask_to_end(now=now)
    if ending is None:
        cycle_state.remove_pid_files(host.root)
        return "No loop of cycles runs here."
    if not now:
        return "It ends after the cycle that runs. To end that too: cleared cycle stop --now."
    runner.wait_ended(ending, _STOP_SECONDS, host.clock)
    return "It has ended."


def end_waiting(host: Host, status: Literal["stopped", "failed"], reason: str) -> bool:
    """Have the cycle that waits in the queue of ``cleared loop`` not begin; whether one did wait.

    Raises ``BusyError`` where a cycle has begun meanwhile.
    """
    with cycle_state.cycles_of(host.root).hold(host.clock, "cycle stop"):
        state = cycle_state.read_state(host.root)
        if not cycle_state.waits_in_queue(state):
            return False
        now = format_iso(host.clock.now())
        cycle_state.write_state(
            host.root, state | {"status": status, "reason": reason[:400], "until": None, "updated_at": now}
        )
    return True


def set_paused(root: Path, paused: bool) -> None:
    """Let no further cycle begin, or let them."""
    if paused:
        write_atomic(root / cycle_state.PAUSE_FILE, b"", fsync=False)
    else:
        (root / cycle_state.PAUSE_FILE).unlink(missing_ok=True)


def reset_consensus(host: Host) -> str:
    """Put the initial consensus in place, and count costs from zero; where the old one is kept, empty if none was.

    Raises ``BusyError`` where a loop runs.
    """
    with cycle_state.cycles_of(host.root).hold(host.clock, "cycle reset-consensus"):
        reset_spending(host)
        if not any((host.root / name).exists() for name in (CONSENSUS, cycle_state.STATE_FILE)):
            return ""  # no cycles are run here, but tasks by engines
        consensus = ConsensusFile(host.root)
        kept = consensus.keep_aside(host.clock.now()) if consensus.read() != INITIAL else ""
        consensus.replace(INITIAL)
        consensus.keep_backup()
        state = cycle_state.read_state(host.root)
        cycle_state.write_state(
            host.root,
            state | Spending().to_state() | {"next_action": "", "stalled": False, "no_progress": 0},
        )
    return kept


def list_history(root: Path) -> list[dict[str, Any]]:
    """The cycles whose logs are kept, oldest first."""
    rows = []
    for path in list_cycle_logs(root):
        match = CYCLE_LOG.fullmatch(path.name)
        assert match is not None
        stamp = match["stamp"]
        rows.append(
            {
                "number": int(match["number"]),
                "engine": match["engine"] or "codex",
                "began": f"{stamp[:4]}-{stamp[4:6]}-{stamp[6:8]}T{stamp[9:11]}:{stamp[11:13]}:{stamp[13:]}Z",
                "bytes": path.stat().st_size,
                "log": f"logs/{path.name}",
            }
        )
    return rows
