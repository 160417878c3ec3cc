"""Bank files that a program went on writing to after they were imported: they come back into ``import/``.

The whole file comes back under a new name, with a card. Importing it leaves out the rows that are in the books already,
as with any overlapping file; so nothing is lost, and nothing is booked twice.
"""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from cleared.base.clock import format_iso
from cleared.base.errors import ClearedError
from cleared.base.safe_files import read_stable, write_atomic
from cleared.cards.kinds import GROWN_FILE
from cleared.changes import commit_messages
from cleared.changes.auto_resolve import RESOLVED_BY
from cleared.changes.host import Host
from cleared.changes.imported_files import HeldFile, held_files, save_record
from cleared.domains.installed_domains import read_imported_files

if TYPE_CHECKING:
    from cleared.changes.decisions.decision_context import Decision, DecisionContext


class GrownFiles(Struct, frozen=True):
    """``grown``: files that were written to since, and have been still for a while. ``again_in``: seconds until the
    next that is being written to may be still; None: there is none."""

    files: tuple[HeldFile, ...]
    recheck_seconds: float | None


def find_grown_files(host: Host) -> GrownFiles:
    """Which of the files that are held were written to since they were taken. Changes nothing."""
    settle, now = host.config.import_.settle_seconds, host.clock.now().timestamp()
    grown, waits = [], []
    for taken in held_files(host):
        state = taken.current_state(host.root)
        if state is None or state == (taken.size, taken.modified):
            continue
        still = now - state[1] / 1e9
        if 0 <= still < settle:  # a time that is yet to come says nothing
            waits.append(settle - still)
        else:
            grown.append(taken)
    return GrownFiles(tuple(grown), min(waits) if waits else None)


def return_grown_files(host: Host) -> GrownFiles:
    """Bring back what was written to files after they were taken; what the look at them found.

    Not under the writer lock: it is taken where there is something to do. Raises ``ClearedError``.
    """
    grown = find_grown_files(host)
    if not grown.files:
        return grown
    # Late: each run looks, and hardly one finds anything to decide.
    from cleared.changes.decisions.decision_context import Decision, commit_decision

    seen: list[HeldFile] = []

    def stage_grown_files(decision_context: DecisionContext) -> Decision | None:
        seen.clear()
        titles = [
            title
            for taken in find_grown_files(host).files
            if (title := _return_file(host, decision_context, taken, seen))
        ]
        for title in titles:
            host.show_message(title)
        return Decision(commit_messages.cards_opened(titles)) if titles else None

    commit_decision(host, "look at imported files again", stage_grown_files, by=RESOLVED_BY)
    for taken in seen:  # only now: killed before, it is brought once more, under the same name
        with contextlib.suppress(OSError):
            save_record(host, taken)
    return grown


def _return_file(host: Host, decision_context: DecisionContext, taken: HeldFile, seen: list[HeldFile]) -> str | None:
    """The title of the card that was staged; None where nothing is new. Raises ``ClearedError``."""
    context, most = decision_context.context, host.config.import_.max_bytes
    state = taken.current_state(host.root)
    if state is not None and decision_context.snapshot.has_file(taken.held):  # git wrote to it, and no bank's program
        seen.append(replace(taken, size=state[0], modified=state[1], at=format_iso(context.now)))
        title = f"{taken.name} is not read again: what was written to it after it was imported came with git"
        return _stage_card(decision_context, title, (taken.id, str(state[0])), file=taken.name)
    try:
        data, status = read_stable(host.root / taken.held, most, shown=taken.name)
    except ClearedError as error:
        state = taken.current_state(host.root)
        if state is None or state[0] <= most:
            return None  # gone, or being written at this moment
        seen.append(replace(taken, size=state[0], modified=state[1], at=format_iso(context.now)))
        title = f"{taken.name} was written to after it was imported, and is not read again: {error.message}"
        return _stage_card(decision_context, title, (taken.id, str(state[0])), file=taken.name)
    digest = hashlib.sha256(data).hexdigest()
    seen.append(replace(taken, size=len(data), sha256=digest, modified=status.st_mtime_ns, at=format_iso(context.now)))
    if digest == taken.sha256 or _is_imported(decision_context, digest):
        return None
    back = _write_copy(host, taken, data, digest) if data else None
    return _stage_card(
        decision_context,
        _describe_growth(taken, data, back),
        (digest, taken.name),
        file=back or taken.name,
        earlier=taken.name,
        sha256=digest,
        bytes_before=taken.size,
        bytes_now=len(data),
        **_find_torn_line(taken, data),
        remedy="Rows that are in the books are left out when it is imported. If this happens again, raise "
        "import.settle_seconds.",
    )


def _is_imported(decision_context: DecisionContext, digest: str) -> bool:
    """Whether a file of just this content is on record already."""
    source, layout = decision_context.context.source, decision_context.host.layout
    return any(file.sha256 == digest for file in read_imported_files(source, layout))


def _stage_card(decision_context: DecisionContext, title: str, key: tuple[str, ...], **details: Any) -> str | None:
    context = decision_context.context
    cards = context.cards
    before = set(cards.added)
    card_id = context.stage_card(GROWN_FILE.name, key, title[:300], **details)
    return None if card_id in before or card_id in cards.committed_cards else title


def _describe_growth(taken: HeldFile, data: bytes, back: str | None) -> str:
    if back is None:
        return f"{taken.name} was emptied after it was imported; what was imported stays"
    if not taken.size or hashlib.sha256(data[: taken.size]).hexdigest() != taken.sha256:
        return f"{taken.name} was written anew after it was imported; it is {back} now"
    cut = _find_torn_line(taken, data)
    torn = f"; line {cut['row']} was not whole when it was imported: look at it" if cut else ""
    return f"{taken.name} grew by {len(data) - taken.size:,} bytes after it was imported; all of it is {back} now{torn}"


def _find_torn_line(taken: HeldFile, data: bytes) -> dict[str, str | int]:
    """The line that was half written when the file was taken, where there was one: its number, and all of it."""
    before, after = data[: taken.size], data[taken.size :]
    if not before or not after or hashlib.sha256(before).hexdigest() != taken.sha256:
        return {}
    if before[-1:] in b"\r\n" or after[:1] in b"\r\n":
        return {}
    start, end = before.rfind(b"\n") + 1, taken.size + (after.find(b"\n") if b"\n" in after else len(after))
    return {"row": before.count(b"\n") + 1, "whole_row": data[start:end][:500].decode("utf-8", "replace").strip()}


def _write_copy(host: Host, taken: HeldFile, data: bytes, digest: str) -> str:
    """The new file in ``import/``: named after its content, so that bringing it twice makes one."""
    name = PurePosixPath(taken.name)
    stem = name.stem.encode("utf-8", "surrogateescape")[:120].decode("utf-8", "ignore")
    back = name.with_name(f"{stem}-grown-{digest[:8]}{name.suffix[:20]}")
    if not (host.root / back).exists():
        write_atomic(host.root / back, data)
    return str(back)
