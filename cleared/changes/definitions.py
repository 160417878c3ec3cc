"""Definitions: files that say what the records of a domain are, such as the columns of a table.

People edit them, and anybody who can push. A text counts where a signed record says that a person has approved it.
"""

from __future__ import annotations

from collections.abc import Iterator

from cleared.base.errors import Place
from cleared.base.file_source import FileSource
from cleared.changes.host import Host
from cleared.domains.installed_domains import ManagedFiles
from cleared.domains.record_audit import Violation
from cleared.trust.approval_record import definition_record_path, digest_of, try_parse_record
from cleared.trust.verification import TRUST_DOUBTS, Approvals


def find_definition_doubt(host: Host, source: FileSource, path: str, *, was: bool = False) -> str:
    """Why the text at a path of a commit does not count here, in words; empty where it does.

    ``was``: it is enough that it counted when it was approved, for a dry run over the past.
    """
    data = source.read(path)
    where = definition_record_path(path)
    record = try_parse_record(source.read(where))
    if record is None or (record.kind, record.path) != ("definition", path):
        return f"nobody has approved {path}"
    if record.digest != (digest_of(data) if data is not None else ""):
        return f"{path} is not as {record.by} approved it on {record.at[:10]}"
    approvals = Approvals(source, host.root)
    if was:
        doubt = "" if approvals.may_have_approved(record) else "it does not count here"
    else:
        doubt = approvals.find_doubt(record)
    return f"{path} was approved by {record.by} on {record.at[:10]}, but {doubt}" if doubt else ""


def list_definitions(host: Host, source: FileSource) -> list[str]:
    """The definitions in a source, and those that were approved there and are gone, sorted."""
    managed = ManagedFiles(host.layout)
    found = {path for folder in managed.audited_folders for path in source.list_paths(folder)}
    prefix, suffix = definition_record_path("\0").split("\0")
    for where in source.list_paths(prefix.rstrip("/")):
        record = try_parse_record(source.read(where))
        if where.endswith(suffix) and record is not None and record.file == where and record.digest:
            found.add(record.path)
    return sorted(path for path in found if managed.is_definition(path))


def find_unapproved_definitions(host: Host, source: FileSource) -> Iterator[Violation]:
    """The definitions in a commit that do not count."""
    for path in list_definitions(host, source):
        if doubt := find_definition_doubt(host, source, path):
            look = f"Look at it, and say yes: cleared definition approve {path}"
            if doubt.endswith(tuple(TRUST_DOUBTS)):
                look = "Say whom you trust: cleared trust"
            yield Violation("definition", doubt, f"{look}. Runs do not use it.", Place(path))
