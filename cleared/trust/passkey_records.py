"""The passkeys of a workspace: a signed record each, which counts as any other record of approval does.

agents/approvals/passkeys/1f3a9c0d12aa.json
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from cleared.trust.approval_record import FOLDER as APPROVALS
from cleared.trust.approval_record import ApprovalRecord, digest_of, short_digest, try_parse_record
from cleared.trust.passkey_assertions import host_of
from cleared.trust.verification import Approvals

FOLDER: Final = f"{APPROVALS}/passkeys"
_NAME: Final = r"[\w][\w .@'-]{0,59}"


class Passkey(Struct, frozen=True):
    """A registered device. ``id``: what lists and commands call it. ``credential``: what the browser calls it.
    ``counter``: how often it had signed when it was registered."""

    id: str
    name: str
    key: str
    credential: str
    counter: int
    by: str
    at: str
    record: str

    @property
    def host(self) -> str:
        """The name it is bound to."""
        return host_of(self.key)


def is_person_name(text: str) -> bool:
    """Whether a text can be the name of a passkey's owner."""
    return re.fullmatch(_NAME, text) is not None


def passkey_id(key: str) -> str:
    """Twelve hex digits."""
    return short_digest(digest_of(key.encode()))


def passkey_path(key: str) -> str:
    """Where the record of a passkey lies."""
    return f"{FOLDER}/{passkey_id(key)}.json"


def read_passkey(record: ApprovalRecord | None) -> Passkey | None:
    """The passkey that a record is about; None for any other record. Whether it counts is not asked."""
    if record is None or record.kind != "passkey":
        return None
    about = record.policy
    name, key, credential, counter = (about.get(each) for each in ("name", "key", "credential", "counter"))
    if not (isinstance(name, str) and isinstance(key, str) and isinstance(credential, str) and type(counter) is int):
        return None
    if not is_person_name(name) or not host_of(key) or record.path != passkey_path(key) or len(credential) > 1_400:
        return None
    return Passkey(passkey_id(key), name, key, credential, counter, record.by, record.at, record.id)


def list_passkeys(approvals: Approvals) -> list[Passkey]:
    """The passkeys that count here, by name."""
    return [each for each in list_recorded(approvals) if approvals.read_record(passkey_path(each.key)) is not None]


def list_recorded(approvals: Approvals) -> list[Passkey]:
    """The passkeys that have a record, whether it counts or not, by name."""
    paths = (path for path in approvals.source.list_paths(FOLDER) if path.endswith(".json"))
    passkeys = (read_passkey(try_parse_record(approvals.source.read(path))) for path in paths)
    return sorted((p for p in passkeys if p is not None), key=lambda each: (each.name, each.id))
