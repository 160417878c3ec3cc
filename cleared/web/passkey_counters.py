"""How often each passkey has signed, as far as this machine has seen: a copied one falls behind."""

from __future__ import annotations

import json
import threading
from typing import Final

from cleared.base.errors import PolicyError
from cleared.base.safe_files import write_atomic
from cleared.trust.keys import cleared_home
from cleared.trust.passkey_assertions import read_counter
from cleared.trust.passkey_records import Passkey

_NAME: Final = "passkey-counters.json"
_writing = threading.Lock()


def note_counter(passkey: Passkey, assertion: str) -> None:
    """Take down the counter of an assertion that was verified. Raises ``PolicyError`` where it went back."""
    counter = read_counter(assertion)
    path = cleared_home() / _NAME
    with _writing:
        try:
            known = {str(k): int(v) for k, v in json.loads(path.read_bytes()).items()}
        except (OSError, ValueError, TypeError, AttributeError, RecursionError):
            known = {}
        most = max(known.get(passkey.id, 0), passkey.counter)
        if most and counter <= most:
            raise PolicyError(
                f"the counter of the passkey of {passkey.name} went back, from {most} to {counter}: it may have been "
                "copied; nothing was done",
                remedy=f"If in doubt: cleared passkey remove {passkey.id}, and register another.",
            )
        if counter:
            write_atomic(path, (json.dumps(known | {passkey.id: counter}) + "\n").encode("ascii"), mode=0o600)
