"""A record of approval: what was approved, by whom, when, on what grounds; signed, one file each.

    agents/approvals/agents/ingest/3fa94c0d12aa.json              a version of a script
    agents/approvals/agents/ingest/3fa94c0d12aa.py                its text, so that it can be brought back
    agents/approvals/agents/ingest/3fa94c0d12aa.quarantined.json  one that was rolled back
    agents/approvals/agents/ingest/switch.json                    that a person disabled it, or enabled it again
    agents/approvals/config.json                                  the protected settings
    agents/approvals/tests/cases/ingest-3fa94c.json               a test, or that one was removed
    agents/approvals/passkeys/1f3a9c0d12aa.json                   a passkey of a person
    agents/approvals/certificates/agents/ingest/3fa94c0d12aa.json how a version stood being killed; lets nothing run
    agents/approvals/definitions/records/prices.yaml.json         what the columns of a table are

The signature covers all fields but itself, as JSON with sorted keys and no spaces.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final, Literal

from msgspec import Struct, field
from msgspec.structs import asdict

from cleared.trust.device_signing import make_token
from cleared.trust.keys import Key, verify_signature
from cleared.trust.passkey_assertions import is_passkey
from cleared.workspace.location import APPROVED_CONFIG

FOLDER: Final = "agents/approvals"
CONFIG: Final = APPROVED_CONFIG
CASES: Final = f"{FOLDER}/tests/cases"
"""Where the approvals of tests lie."""
CORRECTED: Final = "-corrected"
"""In the name of a test that decisions became: what a run should have done."""
WORKSPACE: Final = f"{FOLDER}/workspace"
QUARANTINED: Final = ".quarantined.json"
EXAMINED: Final = "examined"
_VERSION: Final = 1
_MAX_BYTES: Final = 8 << 20
_MAX_TEXT: Final = 4_000

Kind = Literal["script", "config", "case", "quarantine", "disabled", "enabled", "passkey", "definition", "certificate"]


class ApprovalRecord(Struct, frozen=True, eq=False):
    """One approval. ``policy`` holds protected settings, says what a passkey is, or what a script was examined with."""

    kind: Kind
    path: str
    digest: str
    """``sha256:`` and 64 hex digits; empty where the file was removed."""
    by: str
    at: str
    """UTC, ISO 8601."""
    workspace: str
    """The workspace it was made for: a record carried elsewhere is worth nothing there."""
    grants: tuple[str, ...] = ()
    """The primitives the script may call."""
    previous: str = ""
    """The digest of the version that was approved before."""
    serial: int = 1
    """Which approval of this path it is."""
    proposal: str = ""
    report: str = ""
    """Digest of the gate's report."""
    effects: str = ""
    """Digest of the effects of its dry runs."""
    base: str = ""
    """The commit that its dry runs began from."""
    reason: str = ""
    policy: Mapping[str, Any] = {}
    id: str = field(default_factory=lambda: make_token(8))
    key: str = ""
    signature: str = ""

    def signed_bytes(self) -> bytes:
        """What is signed."""
        data = {"version": _VERSION, **{name: getattr(self, name) for name in _SIGNED}}
        return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode("ascii")

    def render(self) -> bytes:
        return (json.dumps({"version": _VERSION, **asdict(self)}, indent=1, ensure_ascii=True) + "\n").encode("ascii")

    @property
    def examined(self) -> Mapping[str, str]:
        """Of a script: path → digest of the agents and shared scripts that ran with it when it was examined."""
        found = self.policy.get(EXAMINED)
        return found if self.kind == "script" and isinstance(found, dict) else {}

    @property
    def is_genuine(self) -> bool:
        """Whether the signature is that of the key it names. A passkey signs decisions, and no record."""
        signable = bool(self.key) and not is_passkey(self.key)
        return signable and verify_signature(self.key, self.signature, self.signed_bytes())

    @property
    def file(self) -> str:
        """The file it lies in."""
        if self.kind == "quarantine":
            return quarantine_path(self.path, self.digest)
        if self.kind in ("disabled", "enabled"):
            return switch_path(self.path)
        if self.kind == "case":
            return case_record_path(self.path)
        if self.kind == "definition":
            return definition_record_path(self.path)
        if self.kind == "certificate":
            return certificate_path(self.path, self.digest)
        return record_path(self.path, self.digest) if self.kind == "script" else self.path


_SIGNED: Final = tuple(name for name in ApprovalRecord.__struct_fields__ if name != "signature")


def sign_record(record: ApprovalRecord, key: Key) -> ApprovalRecord:
    """The record, signed."""
    data = asdict(record) | {"key": key.public}
    unsigned = ApprovalRecord(**data)
    return ApprovalRecord(**data | {"signature": key.sign(unsigned.signed_bytes())})


def parse_record(data: bytes) -> ApprovalRecord:
    """The inverse of ``render``. Raises ``ValueError`` for anything else."""
    if len(data) > _MAX_BYTES:
        raise ValueError("not a record of approval: too large")
    try:
        fields = json.loads(data)
        if fields.pop("version") != _VERSION:
            raise ValueError("another version")
        for name in ("grants",):
            fields[name] = tuple(fields[name])
        record = ApprovalRecord(**fields)
        texts = (
            "kind",
            "path",
            "digest",
            "by",
            "at",
            "workspace",
            "previous",
            "proposal",
            "report",
            "effects",
            "base",
            "reason",
            "id",
            "key",
            "signature",
        )
        if not all(isinstance(getattr(record, name), str) for name in texts):
            raise ValueError("a field is not a text")
        if any(len(getattr(record, name)) > _MAX_TEXT for name in texts):
            raise ValueError("a text is too long")
        if not all(isinstance(g, str) for g in record.grants):
            raise ValueError("a grant is not a text")
        if type(record.serial) is not int:
            raise ValueError("the serial is not a number")
        if not isinstance(record.policy, dict):
            raise ValueError("not a map")
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"not a record of approval: {error}") from None
    return record


def try_parse_record(data: bytes | None) -> ApprovalRecord | None:
    """The record, or None for anything that is none."""
    try:
        return parse_record(data or b"")
    except ValueError:
        return None


def digest_of(data: bytes) -> str:
    """``sha256:…`` of a file's bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def canonical_digest(value: Any) -> str:
    """``sha256:…`` of plain data, whatever the order of its keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=str)
    return digest_of(text.encode("ascii"))


def record_folder(path: str) -> str:
    """Where the records of a script's versions lie."""
    return f"{FOLDER}/{path.removesuffix('.py')}"


def record_path(path: str, digest: str) -> str:
    return f"{record_folder(path)}/{short_digest(digest)}.json"


def text_path(path: str, digest: str) -> str:
    return f"{record_folder(path)}/{short_digest(digest)}.py"


def quarantine_path(path: str, digest: str) -> str:
    return f"{record_folder(path)}/{short_digest(digest)}{QUARANTINED}"


def switch_path(path: str) -> str:
    """The record of whether an agent is disabled."""
    return f"{record_folder(path)}/switch.json"


def case_record_path(path: str) -> str:
    """The approval of a test."""
    return f"{FOLDER}/{path}"


def definition_record_path(path: str) -> str:
    """The approval of what says what records of a domain are."""
    return f"{FOLDER}/definitions/{path}.json"


def certificate_path(path: str, digest: str) -> str:
    """How a version of a script stood being killed at each of its points."""
    return f"{FOLDER}/certificates/{path.removesuffix('.py')}/{short_digest(digest)}.json"


def short_digest(digest: str) -> str:
    """Twelve hex digits."""
    return digest.removeprefix("sha256:")[:12]
