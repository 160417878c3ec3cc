"""Approvals that a commit has damaged. Whether the others count here is asked where something is to act by them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cleared.base.errors import Place, RestoreRemedy
from cleared.base.file_source import FileSource
from cleared.changes.host import Host
from cleared.domains.record_audit import Violation
from cleared.trust.approval_record import CONFIG, FOLDER, WORKSPACE, digest_of, short_digest, try_parse_record
from cleared.trust.trust_store import is_workspace_id
from cleared.trust.verification import OLDER, TRUST_DOUBTS, Approvals

_HARMLESS: Final = TRUST_DOUBTS | {OLDER}
"""What is doubted of an approval that is as it was made: a clone that lacks what another one here approved has an older
one, as it does where somebody has set it back."""
_UNSIGNED: Final = frozenset({"quarantine", "disabled"})
"""What forbids: it holds without a signature."""


def find_damaged_approvals(host: Host, source: FileSource) -> Iterator[Violation]:
    """What lies among the approvals of a source and is not as anybody made it, and what has to be there and is gone."""
    approvals = Approvals(source, host.root)
    identity = approvals.identity
    if identity.problem is not None and not identity.used_elsewhere:
        yield Violation("approval", identity.problem.message, identity.problem.remedy or "", identity.problem.place)
    elif not is_workspace_id(identity.claimed):
        why = "nothing says which books these are: the file is gone, or is no id"
        yield Violation("approval", why, RestoreRemedy(WORKSPACE), Place(WORKSPACE))
    paths = {path for path in source.list_paths(FOLDER) if path.endswith((".json", ".py"))}
    for path in sorted(paths | ({CONFIG} if approvals.is_missing(CONFIG) else set())):
        if why := _find_fault(approvals, path, source.read(path)):
            also = ""
            if path == CONFIG:
                why += ", so nothing is run or decided"
                also = "Or look at config.yaml, and approve what it says: cleared config approve"
            yield Violation("approval", why, RestoreRemedy(path, also), Place(path))


def _find_fault(approvals: Approvals, path: str, data: bytes | None) -> str:
    """What is wrong with a file of approvals, in words; empty for nothing."""
    if data is None:
        return "the record of approval is gone"
    if path.endswith(".py"):
        is_kept = path.endswith(f"/{short_digest(digest_of(data))}.py")
        return "" if is_kept else "this is not the text that was approved under this name"
    record = try_parse_record(data)
    if record is None or record.file != path:
        return "this is not the record of approval that belongs here"
    doubt = ""
    if record.kind not in _UNSIGNED and not record.is_genuine:
        doubt = "its signature is wrong"
    elif path == CONFIG and approvals.identity.problem is None:
        doubt = approvals.find_doubt(record)
    return f"{record.by} approved it on {record.at[:10]}, but {doubt}" if doubt and doubt not in _HARMLESS else ""
