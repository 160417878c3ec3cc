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


JOINED_NOWHERE = (
    chase(("01/14/2025", "COFFEE", "-6.75", "93.25"), ("01/10/2025", "CLIENT", "100.00", "100.00")),
    chase(("01/15/2025", "TEA", "-1.00", "83.50"), ("01/14/2025", "LUNCH", "-2.00", "84.50")),
)


def drop_files(ws: Workspace, *files: str) -> None:
    for number, text in enumerate(files):
        ws.drop(f"{number}.csv", text)
    ws.run("ingest")


def test_what_status_says_is_missing_keeps_a_period_open(ws: Workspace) -> None:
    """Two files have a day in common, and the balance of the one does not go on from the other's: no card says so."""
    drop_files(ws, *JOINED_NOWHERE)
    assert {card["kind"] for card in ws.cards()} == {"entry"}
    said = "on 2025-01-14 -6.75 is missing"
    assert f"complete to the cent through 2025-01-10; {said}" in ws.ok("status").out
    with unchanged(ws):
        refused(ws("period", "close", "2025-01", "--with-pending"), 3, f"missing: checking: {said}", "--despite")
    ws.ok("period", "close", "2025-01-09", "--with-pending")
    ws.ok("period", "close", "2025-01", "--with-pending", "--despite", "the bank looks for it")
    assert marks(ws)[-1]["reason"].endswith(f"despite missing: checking: {said}: the bank looks for it")
    ws.in_order()


def test_what_came_later_is_missing_no_more(ws: Workspace) -> None:
    drop_files(ws, *JOINED_NOWHERE)
    drop_files(ws, chase(("01/14/2025", "CAKE", "-6.75", "86.50")))
    assert "complete to the cent through 2025-01-15" in ws.ok("status").out
    ws.ok("period", "close", "2025-01", "--with-pending")


def test_a_later_month_has_its_own_gaps_only(ws: Workspace) -> None:
    """A gap of January that somebody has seen does not hide one of February, nor keep February open."""
    drop_files(ws, GAP)
    ws.ok("queue", "answer", next(c["id"] for c in ws.cards() if c["kind"] == "balance_gap"), "seen")
    drop_files(ws, chase(("02/01/2025", "CLIENT", "100.00", "1040.00"), ("02/03/2025", "CAKE", "-1.00", "1039.00")))
    ws.ok("period", "close", "2025-02-04", "--with-pending")
    ws.ok("period", "reopen", "2025-01-01", "--reason", "a test")
    drop_files(ws, chase(("02/04/2025", "TEA", "-1.00", "1036.50"), ("02/03/2025", "LUNCH", "-2.00", "1037.50")))
    ws.ok("period", "close", "2025-01", "--with-pending")
    refused(ws("period", "close", "2025-02-04", "--with-pending"), 3, "on 2025-02-03 0.50 is missing")


def test_a_line_that_was_set_aside_is_not_missing(ws: Workspace) -> None:
    """The bank's balance has it, and somebody said that the books shall not."""
    drop_files(
        ws, chase(("01/20/2025", "AWS EMEA", "-10.00", "986.00"), ("01/10/2025", "GITHUB *PRO", "-4.00", "996.00"))
    )
    ws.ok("journal", "void", "2025-01-001", "--reason", "not ours")
    refused(ws("period", "close", "2025-01", "--with-pending"), 3, "voided: checking")
    ws.ok("queue", "answer", next(c["id"] for c in ws.cards() if c["kind"] == "line"), "ignore")
    ws.ok("period", "close", "2025-01", "--with-pending")


def test_what_only_the_books_have_keeps_a_period_open(ws: Workspace) -> None:
    ws.ok("journal", "add", "2025-01-20", "Coffee, from the receipt", "5070=4.50", "1010=-4.50")
    drop_files(ws, chase(("01/10/2025", "CLIENT", "100.00", "100.00"), ("01/20/2025", "COFFEE", "-4.50", "95.50")))
    assert "on 2025-01-20 4.50 is missing" in ws.ok("status").out
    refused(ws("period", "close", "2025-01", "--with-pending"), 3, "missing: checking: on 2025-01-20 4.50 is missing")
    ws.ok("period", "close", "2025-01-19", "--with-pending")
