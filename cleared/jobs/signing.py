"""That a queued job is the one that was enqueued: a keyed digest over it, with a key outside every repository.

What was altered on disk, or copied from another loop, has no valid seal and is never run.
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
from cleared.workspace.safe_files import describe_os_error, write_new

KEY_NAME: Final = "loop-key"
_SIGNED_FIELDS: Final = ("job_id", "kind", "target", "by", "enqueued_at", "started_at", "pid", "pid_started")


class JobSigner:
    """Seals for one runtime directory. Raises ``WorkspaceError`` where the key cannot be had."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        self._key = _read_key()

    def sign(self, item: Mapping[str, Any]) -> str:
        """Of a queued or running job, as hexadecimal digits."""
        what = [self._folder, *(item.get(name) for name in _SIGNED_FIELDS)]
        return hmac.new(self._key, json.dumps(what).encode("ascii"), hashlib.sha256).hexdigest()

    def is_valid(self, item: Mapping[str, Any]) -> bool:
        """Whether it is as it was when it was sealed."""
        return hmac.compare_digest(self.sign(item), str(item.get("seal", "")))


def _read_key() -> bytes:
    path = cleared_home() / KEY_NAME
    try:
        if not path.exists():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_new(path, secrets.token_bytes(32), mode=0o600)  # two may make it at once: the first one has
        found = path.read_bytes()
    except OSError as error:
        raise WorkspaceError(
            f"the key that queued jobs are sealed with cannot be had ({path}): {describe_os_error(error)}",
            remedy="Set CLEARED_HOME to a folder of yours that can be written to.",
        ) from None
    if len(found) != 32:
        raise WorkspaceError(f"the key {path} is damaged", remedy="Delete it; what is queued must be enqueued again.")
    return found
