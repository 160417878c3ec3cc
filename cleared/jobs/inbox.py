"""The loop's inbox: other processes leave messages there; the loop takes them in, and alone writes its state."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

from cleared.base.clock import Clock, format_iso
from cleared.base.errors import BusyError, PolicyError, WorkspaceError
from cleared.base.safe_files import describe_os_error, write_new
from cleared.base.short_text import parse_count
from cleared.jobs import file_schemas
from cleared.jobs.job_types import JobType, resolve_request
from cleared.jobs.loop_state import peek_state
from cleared.jobs.records import InboxMessage, JobManifest, JobRequest, QueuedJob, SafetyStop, request_of
from cleared.jobs.runtime_directory import RuntimeDirectory
from cleared.jobs.signing import JobSigner
from cleared.workspace.settings.model import Config

MAX_WAITING: Final = 1_000
"""Jobs that may wait in one loop."""


def enqueue_job(runtime: RuntimeDirectory, config: Config, name: str, target: str | None, by: str, clock: Clock) -> str:
    """Enqueue a job of the type ``name``; its id. The loop will take the message in, also when it is started later.

    Raises ``PolicyError`` where no such job may be run; that is left as a message too, for which a running loop stops.
    Raises ``BusyError`` where too many jobs wait.
    """
    runtime.make_folders()
    try:
        job_type, checked_target = resolve_request(config, runtime.root, name, target)
    except PolicyError as error:
        put_message(runtime, clock, "refused", refused=make_safety_stop(name, target or "", by, str(error), clock))
        raise
    state = peek_state(runtime)
    waiting = sum(1 for _ in runtime.inbox_folder.glob("*.json")) + len(state["queue"] if state else ())
    if waiting >= MAX_WAITING:
        raise BusyError(f"{waiting} jobs wait already; that is the most", remedy="Let some be run: cleared loop run.")
    request = reserve_job(runtime, job_type, checked_target, by, clock)
    put_message(runtime, clock, "job", job=sign_job(request, JobSigner(runtime.folder)), name=request["job_id"])
    return request["job_id"]


def reserve_job(runtime: RuntimeDirectory, job_type: JobType, target: str, by: str, clock: Clock) -> JobRequest:
    """A new job with an id of its own, which making its manifest reserves. Raises ``WorkspaceError``."""
    now = clock.now()
    stem = f"job_{now:%Y%m%dT%H%M%SZ}_{job_type.name}"
    number = 1
    while True:
        job_id = stem if number == 1 else f"{stem}_{number}"
        number += 1
        if runtime.manifest_path(job_id).exists():
            continue
        request: JobRequest = {
            "job_id": job_id,
            "kind": job_type.name,
            "target": target,
            "by": by[:200],
            "enqueued_at": format_iso(now),
        }
        path, data = (
            runtime.manifest_path(job_id),
            file_schemas.encode_record(build_manifest(runtime, job_type, request)),
        )
        try:
            if write_new(path, data, fsync=False, mode=file_schemas.PRIVATE_MODE):
                return request
        except OSError as error:
            raise WorkspaceError(f"{path} cannot be written: {describe_os_error(error)}") from None


def build_manifest(runtime: RuntimeDirectory, job_type: JobType, request: JobRequest) -> JobManifest:
    """The manifest of a queued job: what it runs and what it may do."""
    manifest: JobManifest = {
        **request_of(request),
        "schema_version": "single_agent_job_manifest_v1",
        "status": "queued",
        "command": list(job_type.command),
        "function": job_type.function or None,
        "reads": list(job_type.reads),
        "writes": list(job_type.writes),
        "timeout_sec": job_type.timeout,
        "max_output_bytes": job_type.max_output,
        "started_at": None,
        "pid": None,
        "pid_started": None,
        "result_path": runtime.display_path(runtime.result_path(request["job_id"])),
        "output_path": runtime.display_path(runtime.output_path(request["job_id"])),
    }
    file_schemas.check_record("manifest", manifest, request["job_id"])
    return manifest


def sign_job(request: JobRequest, signer: JobSigner) -> QueuedJob:
    """A queued job: the request with its signature."""
    return {**request, "seal": signer.sign(request)}


def make_safety_stop(name: str, target: str, by: str, why: str, clock: Clock) -> SafetyStop:
    """A record of a job that was asked for and is not allowed."""
    return {
        "at": format_iso(clock.now()),
        "kind": name[:100],
        "target": target[:200],
        "by": by[:200],
        "reason": why[:1000],
    }


def put_message(
    runtime: RuntimeDirectory,
    clock: Clock,
    what: Literal["job", "refused", "pause", "resume"],
    *,
    job: QueuedJob | None = None,
    refused: SafetyStop | None = None,
    name: str = "",
) -> None:
    """Write a message to the inbox and wake the loop. ``name``: the job's id. Raises ``WorkspaceError``."""
    message: InboxMessage = {
        "schema_version": "single_agent_inbox_v1",
        "what": what,
        "at": format_iso(clock.now()),
        "job": job,
        "refused": refused,
    }
    # Messages are taken in by name: by time, and within one instant by the number of the job's id.
    order = parse_count(name.rpartition("_")[2]) or 0
    stem = f"{clock.now():%Y%m%dT%H%M%S%f}-{order:06d}-{name or f'{what}-{secrets.token_hex(4)}'}"
    file_schemas.write_record("inbox", runtime.inbox_folder / f"{stem}.json", message, fsync=True)
    wake_loop(runtime)


def read_messages(runtime: RuntimeDirectory) -> Iterator[tuple[Path, InboxMessage | WorkspaceError]]:
    """Path and content of each waiting message, oldest first; an error in place of what cannot be read."""
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
    """Remove a message that was taken in. Raises ``WorkspaceError``."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise WorkspaceError(f"{path} cannot be removed: {describe_os_error(error)}") from None


def set_aside_message(path: Path) -> None:
    """Rename what is no message (a folder, perhaps), so that it is not looked at again. Raises ``WorkspaceError``."""
    try:
        path.replace(path.with_name(f".{path.name[:60]}.{secrets.token_hex(6)}.unread"))
    except OSError as error:
        raise WorkspaceError(f"{path} cannot be set aside: {describe_os_error(error)}") from None


def wake_loop(runtime: RuntimeDirectory) -> None:
    """Wake the loop, if one sleeps: write a byte to its pipe."""
    with suppress(OSError):
        descriptor = os.open(runtime.wakeup_pipe, os.O_WRONLY | os.O_NONBLOCK | getattr(os, "O_NOFOLLOW", 0))
        try:
            if stat.S_ISFIFO(os.fstat(descriptor).st_mode):  # never write to something else under that name
                os.write(descriptor, b".")
        finally:
            os.close(descriptor)
