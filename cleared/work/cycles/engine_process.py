"""Running an engine once: the prompt on its standard input, its output into a log, under a watchdog."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from cleared.changes.host import Host
from cleared.processes.kept_programs import run_kept
from cleared.processes.program import Ending, Program
from cleared.work.cycles.cycle_settings import CycleSettings
from cleared.work.cycles.engine_confinement import engine_environment, engine_fence, list_engine_secrets
from cleared.work.cycles.engines.engine import EngineReport
from cleared.work.cycles.live_view import LiveView
from cleared.work.cycles.usage_limit import MOST_WAIT, UsageLimit, find_usage_limit
from cleared.work.loop.job_output import JobOutput

TIMEOUT_CODE: Final = 124
"""Exit code of an engine that was ended for its time, as timeout(1) has it."""
_KEPT_OUTPUT: Final = 8 << 20


class EngineRun(Struct, frozen=True):
    """How a run of an engine ended. ``output``: its standard output, the end of it where it was long; ``tail``: the end
    of all that it printed."""

    exit_code: int
    ended_by: Literal["itself", "timeout", "stop"]
    output: str
    tail: str


def find_limit(run: EngineRun, report: EngineReport, now: datetime) -> UsageLimit | None:
    """The limit of the account that a run ended at, or why it was not let in; None where it ended at neither."""
    unstructured = not report.text and not report.failed
    failed = run.exit_code != 0 or report.failed or unstructured
    limit = find_usage_limit(
        report.limit,
        run.tail,
        failed=failed and run.ended_by != "timeout",
        now=now,
        zone=now.astimezone().tzinfo or UTC,  # an engine means this machine's time, not that of the books
    )
    if limit is None:
        return UsageLimit(report.refused, is_administrative=True) if report.refused else None
    if limit.is_administrative or not now.timestamp() <= report.resets_at <= (now + MOST_WAIT).timestamp():
        return limit
    return replace(limit, until=datetime.fromtimestamp(report.resets_at, UTC))


def run_engine(
    host: Host,
    settings: CycleSettings,
    binary: Path,
    *,
    prompt: str,
    folder: Path,
    scratch: Path,
    log: Path,
    timeout: float,
    environment: Mapping[str, str],
    should_stop: Callable[[], bool] = lambda: False,
    show: Callable[[str], None] = lambda _: None,
) -> EngineRun:
    """Run the engine confined in the clone at ``folder`` until it ends, its time is over or ``should_stop``; nothing of
    it is left then, nor where this process is killed meanwhile. Ctrl-C stops it, too: what it has used by then counts.

    ``scratch``: its temporary folder; ``log``: the file that gets its output, without secrets; ``environment``: of who
    starts it, of which it gets a part; ``show`` gets what it says and does meanwhile. Raises ``ConfinementUnavailable``
    where the kernel refuses the restrictions, ``OSError`` where it cannot be started.
    """
    fence = engine_fence(settings, binary, host.root, folder, scratch, environment, host.config.sandbox.confine)
    own = engine_environment(settings, environment, host.root, scratch, is_fenced=fence is not None)
    redactor = host.redactor.add_secrets(list_engine_secrets(own))
    written = JobOutput(log, settings.max_output_bytes, redactor)
    view = LiveView(settings.engine.describe_event, lambda text: show(redactor.redact_text(text)))
    until, output = host.clock.monotonic() + timeout, bytearray()

    def take_output(data: bytes) -> None:
        nonlocal output
        written.feed_bytes(data)
        view.feed_bytes(data)
        output += data
        del output[:-_KEPT_OUTPUT]

    def find_reason() -> str:
        return "stop" if should_stop() else "timeout" if host.clock.monotonic() > until else ""

    command = [str(binary), *settings.engine.arguments(settings.launch)]
    program = Program(command, folder, own, fence, prompt.encode("utf-8"))
    try:
        ending = run_kept(program, take_output, find_reason, written.feed_bytes)
    except KeyboardInterrupt:
        ending = Ending(-signal.SIGINT, "stop")
    finally:
        written.close()
    ended_by: Literal["itself", "timeout", "stop"] = "itself"
    if ending.reason in ("timeout", "stop"):
        ended_by = "stop" if ending.reason == "stop" else "timeout"
    code = TIMEOUT_CODE if ended_by == "timeout" else ending.code
    return EngineRun(code, ended_by, bytes(output).decode("utf-8", "replace"), written.tail)
