"""A message authentication code (HMAC-SHA256) over each queued job, with a key outside of every repository.

It shows that a queued job is the one that was enqueued: a job that was altered on disk, or copied from another loop,
has no valid signature and is never run. In the loop's files the field is called ``seal``.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from cleared.approvals.keys import cleared_home
from cleared.errors import WorkspaceError
from cleared.safe_files import describe_os_error, write_new

KEY_NAME: Final = "loop-key"
_KEY_BYTES: Final = 32
_SIGNED_FIELDS: Final = ("job_id", "kind", "target", "by", "enqueued_at", "started_at", "pid", "pid_started")


class JobSigner:
    """Signs the jobs of one runtime directory. Raises ``WorkspaceError`` where the key cannot be read or made."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        self._key = _read_key()

    def sign(self, job: Mapping[str, Any]) -> str:
        """The signature of a queued or running job, as hexadecimal digits."""
        message = json.dumps([self._folder, *(job.get(name) for name in _SIGNED_FIELDS)])
        return hmac.new(self._key, message.encode("ascii"), hashlib.sha256).hexdigest()

    def is_valid(self, job: Mapping[str, Any]) -> bool:
        """Whether a job is as it was when it was signed."""
        return hmac.compare_digest(self.sign(job), str(job.get("seal", "")))


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
