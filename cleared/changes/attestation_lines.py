"""The lines of ``logs/attestations-YYYY-MM.jsonl`` and its further parts: which there are, and what each says.

A line is JSON in one spelling alone: keys in order, no spaces. So a line that is in the history twice is the same text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from cleared.base.file_source import find_whole
from cleared.git import Snapshot
from cleared.trust.keys import Key, verify_signature
from cleared.workspace.location import Layout

ORIGIN_TRAILERS: Final = ("Run", "Decision", "Proposed")
"""The trailers of a commit that calls itself a run, a decision or a proposal: only an attestation shows that it is."""
_NAME: Final = "attestations-"
_SHARD: Final = re.compile(rf"{re.escape(Layout.logs_dir)}/{_NAME}[^/]*\.jsonl")
_DOMAIN: Final = b"cleared attestation 1\n"
"""Part of what is signed, so that no signature of another kind can be taken for an attestation's."""


class Attestation(Struct, frozen=True, eq=False):
    """One line with a valid signature of ``key``. ``find_counting`` says whether that key counts."""

    key: str
    workspace: str
    made_by: str
    """The id of the run or decision."""
    at: str
    subject: str
    trailers: Mapping[str, str]
    statement: Mapping[str, Any]
    """All that is signed; ``user`` says whose machine it was. ``emits``, ``opens``, ``settles`` and ``imports`` are
    digests of data that lies elsewhere, ``changes`` those of what the commit changes."""


def list_shards(snapshot: Snapshot) -> dict[str, str]:
    """The files of a commit that hold attestations, oldest first: path → blob."""
    return {
        f"{Layout.logs_dir}/{name}": entry.oid
        for name, entry in snapshot.list_folder(Layout.logs_dir).items()  # in the order of their names, as git keeps it
        if _SHARD.fullmatch(f"{Layout.logs_dir}/{name}") and entry.is_file
    }


def added_lines(before: Snapshot | None, after: Snapshot) -> Iterator[bytes]:
    """The lines that are in ``after`` and not in ``before``."""
    paths = list_shards(after) if before is None else after.list_changes(before, Layout.logs_dir)
    for path in filter(_SHARD.fullmatch, paths):
        old, new = (b"" if each is None else each.read_file(path) or b"" for each in (before, after))
        if new.startswith(old):
            yield from split_lines(new[len(old) :])
        else:
            old_lines = set(split_lines(old))
            yield from (line for line in split_lines(new) if line not in old_lines)


def split_lines(data: bytes) -> list[bytes]:
    """The whole lines of a file. What has no line end is none: what is added next would make another line of it."""
    return data[: data.rfind(b"\n") + 1].splitlines()


def has_line(snapshot: Snapshot, line: bytes) -> bool:
    """Whether a commit has an attestation, in a file of its month."""
    said = parse_attestation(line)
    shards = [path for path in list_shards(snapshot) if said is not None and find_whole(path) == name_shard(said.at)]
    return any(line in split_lines(snapshot.read_file(path) or b"") for path in shards)


def new_lines(before: Sequence[Snapshot], after: Snapshot) -> list[bytes]:
    """The lines that are in ``after`` and in none of the commits ``before``; a repeated line is not new."""
    if not before:
        return list(added_lines(None, after))
    first, *others = before
    lines = list(added_lines(first, after))
    for other in others:
        missing = set(added_lines(other, after))
        lines = [line for line in lines if line in missing]
    for each in before if lines else ():
        known = list_shards(each)
        for path in (path for path, blob in list_shards(after).items() if known.get(path) != blob):
            earlier = each.read_file(path) or b""
            lines = [line for line in lines if line not in earlier]
    return lines


def keeps_lines(head: Snapshot, before: Sequence[Snapshot], after: Snapshot) -> bool:
    """Whether git has left at ``head`` an attestation that is new in ``after``."""
    return any(has_line(head, line) for line in new_lines(before, after))


def parse_attestation(line: bytes) -> Attestation | None:
    """The attestation in a line; ``None`` where its signature is not valid, or it is spelled otherwise.

    Of a short line, such as that of a decision, a process knows what it has verified: do not alter it.
    """
    return _parse_short(line) if len(line) <= _SHORT else _parse(line)


def _parse(line: bytes) -> Attestation | None:
    try:
        data = json.loads(line)
        if _render(data) != line:
            return None
        statement, key, signature = data["says"], data["key"], data["signature"]
        attestation = Attestation(
            key,
            statement["workspace"],
            statement["by"],
            statement["at"],
            statement["subject"],
            statement["trailers"],
            statement,
        )
        texts = (
            attestation.workspace,
            attestation.made_by,
            attestation.at,
            attestation.subject,
            signature,
            key,
            *attestation.trailers.values(),
        )
        if not all(isinstance(text, str) for text in texts) or not verify_signature(
            key, signature, _signed_payload(statement)
        ):
            return None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return attestation


_parse_short: Final = lru_cache(maxsize=1024)(_parse)
_SHORT: Final = 4096
"""Bytes: whoever can push writes lines as long as they like, and they are not to fill the memory."""


def render_attestation(statement: Mapping[str, Any], key: Key) -> bytes:
    """The line that says this, signed; with its line end."""
    return _render({"says": statement, "key": key.public, "signature": key.sign(_signed_payload(statement))}) + b"\n"


def name_shard(at: str) -> str:
    """The file for what is attested at a time (ISO 8601), or its first part."""
    return f"{Layout.logs_dir}/{_NAME}{at[:7]}.jsonl"


def _signed_payload(statement: Mapping[str, Any]) -> bytes:
    return _DOMAIN + _render(statement)


def _render(data: Mapping[str, Any]) -> bytes:
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode("ascii")
