"""Cards that two clones settled differently before git merged them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from contextlib import suppress

from cleared.cards import queue_files
from cleared.changes.host import Host
from cleared.domains.record_audit import TWO_CLONES_PAGE, Violation
from cleared.git import Snapshot


def find_double_decisions(host: Host, snapshot: Snapshot) -> list[Violation]:
    """Cards with two answers, with two runs that went on, or with a run that went on though they were rejected."""
    answers: dict[str, dict[str, None]] = {}
    runs: dict[str, dict[str, None]] = {}
    ticketed: set[str] = set()
    for event in _read_events(host, snapshot):
        card, kind = str(event.get("id")), event.get("event")
        details = event.get("details")
        if kind == "open" and isinstance(details, dict) and "ticket" in details:
            ticketed.add(card)
        elif kind == "went_on":
            runs.setdefault(card, {})[str(event.get("run"))] = None
        elif kind == "resolve" and (card not in ticketed or "signature" in event):
            answers.setdefault(card, {})[str(event.get("resolution"))] = None
    violations = []
    for card in {**answers, **runs}:
        resolutions, resumed = list(answers.get(card, ())), list(runs.get(card, ()))
        what = []
        if len(resolutions) > 1:
            what.append(f"is settled twice, with different answers ({', '.join(repr(a[:60]) for a in resolutions)})")
        if len(resumed) > 1:
            what.append(f"was gone on with by {len(resumed)} runs ({', '.join(resumed)})")
        if resumed and len(resolutions) == 1 and resolutions[0].startswith("rejected"):
            what.append(f"was rejected, and gone on with by the run {resumed[0]}")
        if what:
            entries = _list_posted_entries(host, snapshot, resumed)
            which = f"Both may have posted: {', '.join(entries)}. " if len(entries) > 1 else ""
            which = which or (f"It posted {entries[0]}. " if entries else "")
            violations.append(
                Violation(
                    "provenance",
                    f"the card {card} {' and '.join(what)}",
                    f"{which}Look at what each did (cleared queue show {card}), and void what is not to stand: cleared "
                    f"journal void ID --reason …; {TWO_CLONES_PAGE} tells how this comes about.",
                )
            )
    return violations


def _read_events(host: Host, snapshot: Snapshot) -> Iterator[dict[str, object]]:
    folder = host.layout.queue_dir
    lines = [
        line
        for path, data in sorted(snapshot.read_files(folder).items())
        if path.endswith(queue_files.SUFFIX)
        for line in data.splitlines()
    ]
    events = []
    for line in lines:
        with suppress(ValueError, RecursionError):  # ``format`` names what is damaged
            event = json.loads(line)
            if isinstance(event, dict):
                events.append(event)
    yield from sorted(events, key=lambda event: event.get("event") != "open")


def _list_posted_entries(host: Host, snapshot: Snapshot, runs: Iterable[str]) -> list[str]:
    """What these runs have posted, by the log, and is not voided."""
    marks = {f"run:{run}" for run in runs}
    if not marks:
        return []
    text = (snapshot.read_file(host.layout.log) or b"").decode("utf-8", "replace")
    with suppress(csv.Error):
        rows = csv.reader(io.StringIO(text, newline=""))
        return sorted({row[4] for row in rows if len(row) > 5 and row[5] in marks and row[4] and "journal" in row[2]})
    return []
