"""What a reviewer sees of the queue: cards in full, what is like them, what one decision would cover, accounts."""

from __future__ import annotations

from decimal import Decimal

import pytest
from harness import Workspace, chase

from cleared.base.errors import UsageError
from cleared.books.review.account_choice import amount_to_split, match_accounts, parse_split
from cleared.books.review.book_cards import confidence_text
from cleared.books.review.book_facts import vendor_key
from cleared.changes.host import Host
from cleared.changes.workspace_opening import open_workspace
from cleared.review.card_groups import card_group
from cleared.review.card_view import CardView, show_card
from cleared.review.explanation import explain_record as why_of
from cleared.review.queue_snapshot import QueueSnapshot, read_queue
from cleared.review.source_files import bank_file, record_script

FEBRUARY = chase(
    ("02/03/2025", "COFFEE 0231", "-4.80"), ("02/04/2025", "COFFEE 0977", "-5.10"), ("02/05/2025", "PAPER", "-31.00")
)
HOLD = """
for file in importer_scan():
    for txn in importer_parse(file["name"]):
        queue_add_review(entry_id=txn["reference"], description="who is this?", confidence=0.0)
    importer_mark_processed(file["name"])
"""


def host(ws: Workspace) -> Host:
    return open_workspace(ws.root)


def look(ws: Workspace) -> QueueSnapshot:
    return read_queue(host(ws))


def card(ws: Workspace, text: str) -> str:
    """The id of the only open card whose text holds this."""
    [found] = [r.id for r in look(ws).rows if text in r.text]
    return found


def said(shown: CardView) -> str:
    return "\n".join(
        [s.title + "\n" + "\n".join(s.lines) + "\n".join("  ".join(r) for r in s.rows) for s in shown.sections]
    )


def test_an_entry_card_says_what_bank_and_agent_said_and_how_surely(posted: Workspace) -> None:
    queue = look(posted)
    assert [(r.text, r.amount, r.date) for r in queue.rows] == [
        ("ACME INVOICE 12", "1500.00", "2025-01-06"),
        ("COFFEE", "-4.50", "2025-01-10"),
    ]
    shown = show_card(queue, card(posted, "COFFEE"))
    assert (shown.heading, shown.amount, shown.group) == ("Entry to confirm", "-4.50", 1)
    text = said(shown)
    for part in (
        "january.csv, row 5",
        "5030 Uncategorised expense   4.50",
        "Not sure at all: no confident match",
        "ingest decided",
        "Nothing like it before that day.",
    ):
        assert part in text
    assert [c.verb for c in shown.choices] == ["confirm", "correct", "reject"]
    with pytest.raises(UsageError):
        show_card(queue, "nosuchid")


def test_past_entries_of_the_same_text_are_shown_as_corrected(posted: Workspace) -> None:
    posted.ok("queue", "correct", card(posted, "COFFEE"), "--account", "5070")
    posted.drop("february.csv", FEBRUARY)
    posted.run("ingest")
    queue = look(posted)
    shown = show_card(queue, next(r.id for r in queue.rows if r.text == "COFFEE 0977"))
    [past] = [s.rows for s in shown.sections if s.title == "Similar before"]
    assert [(r[0], r[2], r[3]) for r in past] == [
        ("2025-02-03", "5030 Uncategorised expense", "pending-review"),
        ("2025-01-10", "5070 Meals", "user-corrected"),
    ]
    best = match_accounts(queue, shown.id)[0]
    assert (best.id, best.why) == (5070, "used 1× for this vendor"), "used before for this vendor"


def test_similar_before_shows_nothing_later(ws: Workspace) -> None:
    """Fault 17: what came after an entry is nothing that it could have been booked by."""
    ws.drop("january.csv", chase(*((f"01/{day:02d}/2025", f"COFFEE {day}", f"-{day}.00") for day in (20, 14, 8, 2))))
    ws.run("ingest")
    past = {}
    for row in look(ws).rows:
        [found] = [s.rows for s in show_card(look(ws), row.id).sections if s.title == "Similar before"]
        past[row.text] = [r[0] for r in found]
    assert past == {
        "COFFEE 20": ["2025-01-14", "2025-01-08", "2025-01-02"],
        "COFFEE 14": ["2025-01-08", "2025-01-02"],
        "COFFEE 8": ["2025-01-02"],
        "COFFEE 2": [],
    }


def test_a_group_is_of_one_vendor_on_the_same_accounts(posted: Workspace) -> None:
    posted.drop("february.csv", FEBRUARY)
    posted.run("ingest")
    queue = look(posted)
    coffee = [r.id for r in queue.rows if r.text.startswith("COFFEE")]
    group = card_group(queue, coffee[0])
    assert group is not None and group.ids == coffee and len(coffee) == 3
    assert (group.name, group.detail, group.total) == ("COFFEE", "5030 Uncategorised expense", "-14.40")
    assert show_card(queue, coffee[0]).group == 3
    other = card_group(queue, card(posted, "PAPER"))
    assert other is not None and len(other.rows) == 1


def test_accounts_are_found_by_number_and_name(posted: Workspace) -> None:
    queue, coffee = look(posted), card(posted, "COFFEE")
    assert [a.id for a in match_accounts(queue, coffee, "507")] == [5070]
    assert [a.id for a in match_accounts(queue, coffee, "MEA")] == [5070]
    assert [a.id for a in match_accounts(queue, coffee, "supplies")] == [5060]
    assert 5060 in [a.id for a in match_accounts(queue, coffee, "ffice")]
    everything = [a.id for a in match_accounts(queue, coffee)]
    assert everything[0] == 5020, "the most used of those that are likely"
    assert 1010 not in everything, "the bank's own account is no answer"
    assert everything[-1] == 5030, "the one it has is the least likely"
    assert match_accounts(queue, coffee, "zzz") == []


@pytest.mark.parametrize(
    ("typed", "lines", "problem"),
    [
        ("5070=4 5060=0.50", [(5070, "4"), (5060, "0.50")], ""),
        ("5070=4, 5060=", [(5070, "4"), (5060, "0.50")], ""),
        ("5070=4", [(5070, "4")], "0.50 is not placed yet"),
        ("5070= 5060=1", [], "how much for 5070?"),
        ("5070=4 9999=", [(5070, "4")], "there is no account 9999"),
        ("5070=x", [], "5070=x is not ACCOUNT=AMOUNT"),
        ("5070=NaN", [], "5070=NaN: no amount"),
        ("5070=1e999999999", [], "5070=1e999999999: no amount"),
        ("5070=1e-999999999", [], "5070=1e-999999999: no amount"),
        ("5070=4.50 5060=", [(5070, "4.50")], "nothing is left for 5060"),
    ],
)
def test_a_split_is_checked_as_it_is_typed(posted: Workspace, typed: str, lines: list[object], problem: str) -> None:
    split = parse_split(look(posted), card(posted, "COFFEE"), typed)
    assert [(a, str(v)) for a, v in split.lines] == lines
    assert split.problem == problem


def test_a_held_line_can_be_posted_or_ignored(ws: Workspace) -> None:
    ws.drop("held.csv", chase(("01/09/2025", "WHO KNOWS", "-12.00")))
    ws.script(HOLD)
    queue = look(ws)
    [row] = queue.rows
    shown = show_card(queue, row.id)
    assert (row.kind, row.amount, [c.verb for c in shown.choices]) == ("line", "-12.00", ["correct", "answer"])
    assert "who is this?" in said(shown)
    assert amount_to_split(queue, row.id) == Decimal("12.00")
    group = card_group(queue, row.id)
    assert group is not None and group.ids == [row.id]


def test_failed_runs_and_file_cards_say_what_they_are_about(posted: Workspace) -> None:
    posted.script("journal_void('2024-01-001', 'x')", code=1)
    posted.drop("again.csv", posted.read("import/processed/january.csv"))
    posted.drop("broken.csv", b"\x00\x01 no bank file")
    posted("agent", "run", "ingest")
    queue = look(posted)
    by_kind = {r.kind: show_card(queue, r.id) for r in queue.rows}
    failed = by_kind["failed_run"]
    assert "cleared agent run" in said(failed) and [c.verb for c in failed.choices] == ["answer", "retry"]
    assert "broken.csv" in said(by_kind["bad_file"])


def test_rows_that_came_before_are_listed_with_their_file(posted: Workspace) -> None:
    posted.drop("again.csv", posted.read("import/processed/january.csv"))
    posted.run("ingest")
    queue = look(posted)
    [shown] = [show_card(queue, r.id) for r in queue.rows if r.kind == "duplicate_file"]
    [table] = [s for s in shown.sections if s.rows]
    assert "amount" in table.columns and len(table.rows) == 4
    assert bank_file(host(posted), queue, shown.id).lines[1].startswith("DEBIT,01/03/2025")


def test_the_bank_file_and_the_script_are_opened_at_their_line(posted: Workspace) -> None:
    queue, coffee = look(posted), card(posted, "COFFEE")
    found = bank_file(host(posted), queue, coffee)
    assert found.name == "january.csv" and found.line == 5 and "COFFEE" in found.lines[4]
    code = record_script(host(posted), why_of(host(posted), "2025-01-004").data)
    assert code.name == "agents/ingest.py" and code.line
    assert "journal_add_double" in code.lines[code.line - 1]


def test_a_card_cannot_have_any_file_shown(posted: Workspace) -> None:
    queue = look(posted)
    identity = card(posted, "COFFEE")
    from msgspec.structs import replace

    for name in ("config.yaml", "import/../config.yaml", "/etc/passwd"):
        queue.cards[identity] = replace(queue.cards[identity], record_id=None, details={"file": name})
        with pytest.raises(UsageError):
            bank_file(host(posted), queue, identity)


def test_vendors_are_told_by_name_or_first_words() -> None:
    assert vendor_key("", "COFFEE 0231 BERLIN") == vendor_key("", "Coffee 99 berlin")
    assert vendor_key(" Amazon Web Services ", "AWS") == "AMAZON WEB SERVICES"
    assert vendor_key("", "12345") == "12345"
    assert vendor_key("", "スターバックス 渋谷 12") == "スターバックス 渋谷"


def test_confidence_is_said_in_words() -> None:
    assert [confidence_text(c) for c in ("0.60", "0.00", "1", "", "x")] == [
        "60 % sure",
        "Not sure at all",
        "100 % sure",
        "Not said how sure",
        "Not said how sure",
    ]
