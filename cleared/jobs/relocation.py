"""Jobs of a loop whose folder has come to another place: they and their results are signed again, where the signature
was right."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from cleared.base.errors import WorkspaceError
from cleared.base.safe_files import write_atomic
from cleared.jobs import file_schemas
from cleared.jobs.inbox import read_messages
from cleared.jobs.job_results import read_signed_result
from cleared.jobs.runtime_directory import RuntimeDirectory
from cleared.jobs.signing import JobSigner


def sign_jobs_again(runtime: RuntimeDirectory, old: JobSigner, new: JobSigner) -> None:
    """Sign what waits in the files of ``runtime`` with ``new`` where ``old`` had signed it. No loop may be at work."""

    def sign_again(job: dict[str, Any] | None) -> None:
        if job is not None and old.is_valid(job):
            job["seal"] = new.sign(job)

    for path in (runtime.state_path, runtime.backup_path):
        with suppress(WorkspaceError):  # there is none, or it is damaged: the loop says so
            state = file_schemas.read_record("state", path)
            for job in [*state["queue"], state["running"]]:
                sign_again(job)
            file_schemas.write_record("state", path, state)
    for seal in runtime.seals_folder.glob("*"):
        with suppress(WorkspaceError, OSError):  # it counts for nothing anyway
            by = file_schemas.read_record("manifest", runtime.manifest_path(seal.name))["by"]
            result = read_signed_result(runtime, old, seal.name, by)
            write_atomic(seal, new.sign_result(result, by).encode("ascii"), mode=file_schemas.PRIVATE_MODE)
    for message_path, message in read_messages(runtime):
        if not isinstance(message, WorkspaceError):
            record: dict[str, Any] = dict(message)
            sign_again(record["job"])
            file_schemas.write_record("inbox", Path(message_path), record)
