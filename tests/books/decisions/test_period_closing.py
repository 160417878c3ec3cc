"""Fault 13: a period with gaps, or with bank lines that are held, is not closed without a word. Row B23."""

from __future__ import annotations

import csv

from harness import Workspace, chase, refused, unchanged

GAP = chase(("01/20/2025", "AWS EMEA", "-10.00", "940.00"), ("01/10/2025", "GITHUB *PRO", "-4.00", "996.00"))
HOLD = (
    "for f in importer_scan():\n    for t in importer_parse(f['name']):\n"
    "        queue_add_review(entry_id=t['reference'], description='who is this?')\n"
    "    importer_mark_processed(f['name'])"
)


def marks(ws: Workspace) -> list[dict[str, str]]:
    return list(csv.DictReader(ws.read("books/periods.csv").splitlines()))


def test_b23_a_gap_in_the_balance_keeps_a_period_open(ws: Workspace) -> None:
    """B23: named with its days and amount; closed with a reason, which stays on record."""
    ws.drop("january.csv", GAP)
    ws.run("ingest")
    with unchanged(ws):
        refused(
            ws("period", "close", "2025-01"),
            3,
            "gap: january.csv",
            "jumps by -46.00 between 2025-01-10",
            "cleared queue list",
            "--despite",
        )
        refused(ws("period", "close", "2025-01", "--despite", "  "), 3, "gap: january.csv")
    ws.ok("period", "close", "2025-01-09")
    ws.ok("period", "close", "2025-01", "--reason", "year end", "--despite", "the bank's mistake, see mail")
    mark = marks(ws)[-1]
    assert mark["reason"].startswith("year end; despite gap: january.csv")
    assert mark["reason"].endswith("the bank's mistake, see mail")
    assert ws.git("log", "-1", "--format=%s").strip() == (
        "close: through 2025-01-31, despite 1 open matter: the bank's mistake, see mail"
    )
    assert "despite" in ws.ok("period", "list").out
    ws.in_order()


def test_b23_a_gap_that_somebody_has_looked_at_is_none(ws: Workspace) -> None:
    ws.drop("january.csv", GAP)
    ws.run("ingest")
    card = next(c["id"] for c in ws.cards() if c["kind"] == "balance_gap")
    ws.ok("queue", "answer", card, "seen")
    ws.ok("period", "close", "2025-01", "--despite", "nothing to name")
    assert marks(ws)[-1]["reason"] == "", "nothing stood in its way"


def test_b23_a_gap_that_a_later_file_fills_is_settled(ws: Workspace) -> None:
    """The missing rows settle the card, so that nobody has to."""
    ws.drop("january.csv", GAP)
    ws.run("ingest")
    ws.drop("half.csv", chase(("01/15/2025", "SHOES", "-6.00", "990.00")))
    ws.run("ingest")
    assert [c["kind"] for c in ws.cards()].count("balance_gap") >= 1, "some of it is missing still"
    ws.drop("rest.csv", chase(("01/16/2025", "HAT", "-40.00", "950.00")))
    ws.run("ingest")
    assert "balance_gap" not in [c["kind"] for c in ws.cards()]
    ws.ok("period", "close", "2025-01", "--with-pending")


def test_b23_voided_and_held_lines_keep_a_period_open(ws: Workspace) -> None:
    """B23: what the bank said and the books do not is listed; posting or ignoring it lets the period close."""
    ws.drop("january.csv", chase(("01/20/2025", "AWS EMEA", "-10.00"), ("01/10/2025", "GITHUB *PRO", "-4.00")))
    ws.run("ingest")
    ws.drop("more.csv", chase(("01/30/2025", "UNKNOWN", "-5.00"), ("02/03/2025", "FEBRUARY", "-6.00")))
    ws.script(HOLD)
    ws.ok("journal", "void", "2025-01-001", "--reason", "wrong account")
    with unchanged(ws):
        done = ws("period", "close", "2025-01")
        refused(done, 3, "voided: checking 2025-01-20 -10.00 AWS EMEA (wrong account)", "held: checking 2025-01-30 -5")
        assert "FEBRUARY" not in done.err
    lines = {c["details"]["text"]: c["id"] for c in ws.cards() if c["kind"] == "line"}
    ws.ok("queue", "correct", lines["AWS EMEA"], "--account", "5060")
    refused(ws("period", "close", "2025-01"), 3, "held: checking 2025-01-30")
    ws.ok("queue", "answer", lines["UNKNOWN"], "ignore")
    ws.ok("period", "close", "2025-01")
    ws.in_order()


def test_files_that_wait_are_said(ws: Workspace) -> None:
    """A file that nobody imported is no line of the books yet; whoever closes is told of it."""
    ws.drop("january.csv", "no bank file")
    assert "1 file in import/ is not imported" in ws.ok("period", "close", "2025-01").err
