"""A message authentication code (HMAC-SHA256) over each queued job and each result, with a key outside of every
repository.

It shows that a queued job is the one that was enqueued: a job that was altered on disk, or copied from another loop,
has no valid signature and is never run. In the loop's files the field is called ``seal``. A result without one was not
written by who watched over the job.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from cleared.base.errors import WorkspaceError
from cleared.base.safe_files import describe_os_error, write_new
from cleared.trust.keys import cleared_home

KEY_NAME: Final = "loop-key"
_KEY_BYTES: Final = 32
_SIGNED_FIELDS: Final = ("job_id", "kind", "target", "by", "enqueued_at", "started_at", "pid", "pid_started")


class JobSigner:
    """Signs the jobs of one runtime directory, with this user's key or with ``key``.

    Raises ``WorkspaceError`` where the key cannot be read or made.
    """

    def __init__(self, folder: Path, key: bytes | None = None) -> None:
        self._folder = str(folder)
        self._key = key if key is not None else _read_key()

    def sign(self, job: Mapping[str, Any]) -> str:
        """The signature of a queued or running job, as hexadecimal digits."""
        return self._authenticate([self._folder, *(job.get(name) for name in _SIGNED_FIELDS)])

    def is_valid(self, job: Mapping[str, Any]) -> bool:
        """Whether a job is as it was when it was signed."""
        return hmac.compare_digest(self.sign(job), str(job.get("seal", "")))

    def sign_result(self, result: Mapping[str, Any], by: str) -> str:
        """The signature of the result of a job that ``by`` asked for. The loop's own mark in it is not signed."""
        fields = {name: value for name, value in sorted(result.items()) if name != "wakeup_written"}
        return self._authenticate(["result", self._folder, by, fields])

    def is_valid_result(self, result: Mapping[str, Any], by: str, seal: str) -> bool:
        """Whether a result is as it was when it was signed."""
        return hmac.compare_digest(self.sign_result(result, by).encode("ascii"), seal.encode("utf-8", "replace"))

    def _authenticate(self, values: list[Any]) -> str:
        return hmac.new(self._key, json.dumps(values).encode("ascii"), hashlib.sha256).hexdigest()


def _read_key() -> bytes:
    """The key; made where there is none yet."""
    path = cleared_home() / KEY_NAME
    try:
        if not path.exists():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_new(path, secrets.token_bytes(_KEY_BYTES), mode=0o600)  # where two make it at once, the first wins
        key = path.read_bytes()
    except OSError as error:
        raise WorkspaceError(
            f"the key that signs queued jobs cannot be used ({path}): {describe_os_error(error)}",
            remedy="Set CLEARED_HOME to a folder of yours that can be written to.",
        ) from None
    if len(key) != _KEY_BYTES:
        raise WorkspaceError(f"the key {path} is damaged", remedy="Delete it; what is queued must be enqueued again.")
    return key
