"""A workspace that has come to another place: jobs of its loop, their results and its tasks are signed again, where the
signature was right."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from cleared.base.clock import SystemClock
from cleared.base.errors import ClearedError, WorkspaceError
from cleared.base.safe_files import write_atomic
from cleared.jobs import file_schemas
from cleared.jobs.inbox import read_messages
from cleared.jobs.job_results import read_signed_result
from cleared.jobs.loop_reader import loop_of
from cleared.jobs.runtime_directory import RuntimeDirectory, locate_runtime
from cleared.jobs.signing import KEY_NAME, JobSigner
from cleared.jobs.tasks.task_seals import move_seals
from cleared.trust.keys import cleared_home, task_key
from cleared.workspace.location import CONFIG_NAME
from cleared.workspace.settings.config_file import load_config_file


def sign_moved_workspace(root: Path, old_root: Path) -> None:
    """Sign again what lies in a workspace that was moved to ``root``; not where a key cannot be read, as in a job."""
    with suppress(ClearedError, OSError):
        if (path := cleared_home() / KEY_NAME).exists():
            key = path.read_bytes()
            sign_loop_again(root, (old_root, key), (root, key))
    with suppress(ClearedError, OSError):
        if (own := task_key(root)) is not None:
            move_seals(root, (old_root, own), (root, own))


def sign_loop_again(folder: Path, old: tuple[Path, bytes], new: tuple[Path, bytes]) -> None:
    """Sign again, for another place and key, what the loop of the workspace has that lies in ``folder`` now. A loop
    whose folder lies elsewhere, or which is at work, stays as it is; so it does where the settings cannot be read:
    whoever starts it is told so."""
    with suppress(ClearedError):
        runtime = locate_runtime(folder, load_config_file(folder / CONFIG_NAME))
        if runtime.folder.is_dir() and runtime.folder.is_relative_to(runtime.root):
            inner = runtime.folder.relative_to(runtime.root)
            with loop_of(runtime).hold(SystemClock(), "move"):
                _sign_jobs_again(runtime, *(JobSigner(root / inner, key) for root, key in (old, new)))


def _sign_jobs_again(runtime: RuntimeDirectory, old: JobSigner, new: JobSigner) -> None:
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
