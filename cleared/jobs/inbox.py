"""What others want of the loop. They leave messages; the loop alone takes them in, and alone writes its state."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

from cleared.clock import Clock, format_iso
from cleared.config.model import Config
from cleared.errors import BusyError, PolicyError, WorkspaceError
from cleared.jobs import file_schemas
from cleared.jobs.job_types import JobType, resolve_request
from cleared.jobs.loop_state import peek_state
from cleared.jobs.records import InboxMessage, JobManifest, JobRequest, QueuedJob, SafetyStop, request_of
from cleared.jobs.runtime_directory import RuntimeDirectory
from cleared.jobs.signing import JobSigner
from cleared.workspace.safe_files import describe_os_error, write_new

MAX_WAITING: Final = 1_000
"""Jobs that may wait in one loop."""


def enqueue_job(runtime: RuntimeDirectory, config: Config, kind: str, target: str | None, by: str, clock: Clock) -> str:
    """Ask for a job; its id. It is in the loop's hands when this returns.

    Raises ``PolicyError`` where no such job may be run, which is left as a message too: a running loop stops for it.
    """
    runtime.make_folders()
    try:
        found, aim = resolve_request(config, runtime.root, kind, target)
    except PolicyError as error:
        put_message(runtime, clock, "refused", refused=make_safety_stop(kind, target or "", by, str(error), clock))
        raise
    state = peek_state(runtime)
    waiting = sum(1 for _ in runtime.inbox_folder.glob("*.json")) + len(state["queue"] if state else ())
    if waiting >= MAX_WAITING:
        raise BusyError(f"{waiting} jobs wait already; that is the most", remedy="Let some be run: cleared loop run.")
    item = reserve_job(runtime, found, aim, by, clock)
    put_message(runtime, clock, "job", job=sign_job(item, JobSigner(runtime.folder)), name=item["job_id"])
    return item["job_id"]


def reserve_job(runtime: RuntimeDirectory, kind: JobType, target: str, by: str, clock: Clock) -> JobRequest:
    """A new job, its id unique: the manifest that is made for it cannot be made twice. Raises ``WorkspaceError``."""
    now = clock.now()
    stem = f"job_{now:%Y%m%dT%H%M%SZ}_{kind.name}"
    number = 1
    while True:
        identity = stem if number == 1 else f"{stem}_{number}"
        number += 1
        if runtime.manifest_path(identity).exists():
            continue
        item: JobRequest = {
            "job_id": identity, "kind": kind.name, "target": target, "by": by[:200], "enqueued_at": format_iso(now),
        }  # fmt: skip
        path, data = runtime.manifest_path(identity), file_schemas.encode_record(build_manifest(runtime, kind, item))
        try:
            if write_new(path, data, fsync=False, mode=file_schemas.PRIVATE_MODE):
                return item
        except OSError as error:
            raise WorkspaceError(f"{path} cannot be written: {describe_os_error(error)}") from None


def build_manifest(runtime: RuntimeDirectory, kind: JobType, item: JobRequest) -> JobManifest:
    """What the job is and may do, before it has started."""
    data: JobManifest = {
        **request_of(item), "schema_version": "single_agent_job_manifest_v1", "status": "queued",
        "command": list(kind.command), "function": kind.function or None, "reads": list(kind.reads),
        "writes": list(kind.writes), "timeout_sec": kind.timeout, "max_output_bytes": kind.max_output,
        "started_at": None, "pid": None, "pid_started": None,
        "result_path": runtime.display_path(runtime.result_path(item["job_id"])),
        "output_path": runtime.display_path(runtime.output_path(item["job_id"])),
    }  # fmt: skip
    file_schemas.check_record("manifest", data, item["job_id"])
    return data


def sign_job(item: JobRequest, sealer: JobSigner) -> QueuedJob:
    return {**item, "seal": sealer.sign(item)}


def make_safety_stop(kind: str, target: str, by: str, why: str, clock: Clock) -> SafetyStop:
    """A record of something that was asked for and is not allowed."""
    return {
        "at": format_iso(clock.now()),
        "kind": kind[:100],
        "target": target[:200],
        "by": by[:200],
        "reason": why[:1000],
    }


def put_message(
    runtime: RuntimeDirectory, clock: Clock, what: Literal["job", "refused", "pause", "resume"], *,
    job: QueuedJob | None = None, refused: SafetyStop | None = None, name: str = "",
) -> None:  # fmt: skip
    """Leave a message, and wake the loop. Raises ``WorkspaceError``."""
    message: InboxMessage = {
        "schema_version": "single_agent_inbox_v1", "what": what, "at": format_iso(clock.now()), "job": job,
        "refused": refused,
    }  # fmt: skip
    # Messages are taken in by name: in the order of time, and of ids within one instant.
    number = name.rpartition("_")[2]
    order = int(number) if number.isdigit() else 0
    stem = f"{clock.now():%Y%m%dT%H%M%S%f}-{order:06d}-{name or f'{what}-{secrets.token_hex(4)}'}"
    file_schemas.write_record("inbox", runtime.inbox_folder / f"{stem}.json", message, fsync=True)
    wake_loop(runtime)


def read_messages(runtime: RuntimeDirectory) -> Iterator[tuple[Path, InboxMessage | WorkspaceError]]:
    """What waits, oldest first; an error in place of what is no message."""
    try:
        names = sorted(entry.name for entry in os.scandir(runtime.inbox_folder) if entry.name.endswith(".json"))
    except FileNotFoundError:
        return
    for name in names:
        path = runtime.inbox_folder / name
        if name.startswith("."):
            continue
        try:
            yield path, file_schemas.read_record("inbox", path, shown=f"inbox/{name}")
        except WorkspaceError as error:
            yield path, error


def remove_message(path: Path) -> None:
    """Take away a message that was taken in. Raises ``WorkspaceError``."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise WorkspaceError(f"{path} cannot be removed: {describe_os_error(error)}") from None


def set_aside_message(path: Path) -> None:
    """Have what is no message, a folder even, stay under a name that is not looked at. Raises ``WorkspaceError``."""
    try:
        path.replace(path.with_name(f".{path.name[:60]}.{secrets.token_hex(6)}.unread"))
    except OSError as error:
        raise WorkspaceError(f"{path} cannot be set aside: {describe_os_error(error)}") from None


def wake_loop(runtime: RuntimeDirectory) -> None:
    """Wake the loop, if one sleeps."""
    with suppress(OSError):
        descriptor = os.open(runtime.wakeup_pipe, os.O_WRONLY | os.O_NONBLOCK | getattr(os, "O_NOFOLLOW", 0))
        try:
            if stat.S_ISFIFO(os.fstat(descriptor).st_mode):  # nothing else that may have been put there is written to
                os.write(descriptor, b".")
        finally:
            os.close(descriptor)
