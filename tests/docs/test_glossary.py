"""docs/glossary.md says of an entry's status what the ledger does."""

from __future__ import annotations

import re
from pathlib import Path

from cleared.books.ledger.entry import STATUSES, TRANSITIONS

ROOT = Path(__file__).resolve().parents[2]


def test_the_glossary_has_each_status_and_the_one_way_back() -> None:
    [row] = re.findall(r"^\| \*\*Status\*\* \| (.*) \|$", (ROOT / "docs/glossary.md").read_text("utf-8"), re.MULTILINE)
    listed, back = row.split(" It moves ")
    assert sorted(re.findall(r"`([a-z-]+)`", listed)) == sorted(STATUSES)
    scripts = {"pending-review", "auto-confirmed"}
    ways_back = {(old, new) for old, news in TRANSITIONS.items() for new in news if new == "pending-review"}
    assert ways_back == {("auto-confirmed", "pending-review")}
    assert re.search(r"Only `auto-confirmed` may go back to `pending-review`", back)
    assert not any(TRANSITIONS[old] & scripts for old in TRANSITIONS if old not in scripts)
    assert TRANSITIONS["voided"] == frozenset()
