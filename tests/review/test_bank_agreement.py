"""``cleared reconcile``, and through which day ``cleared status`` says an account is complete."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace

from harness import Workspace, chase, refused, unchanged
from statement_files import LINES, MONTH, write_camt

OPENING = ("journal", "add", "2025-01-01", "Opening", "1010=1000.00", "3900=-1000.00")


def test_the_books_agree_with_the_bank(posted: Workspace) -> None:
    posted.ok(*OPENING)
    done = posted.ok("reconcile", "1010", "--date", "2025-01-31", "--balance", "2,446.40")
    assert done.out.startswith("1010 Business checking agrees with the bank on 2025-01-31: 2446.40 (")
    (account,) = [a for a in posted.json("status")["accounts"] if a["account_id"] == 1010]
    assert (account["through"], account["differs_on"]) == ("2025-01-31", None)
    assert "complete to the cent through 2025-01-31" in posted.ok("status").out


def test_what_an_account_began_with_is_named(posted: Workspace) -> None:
    """The command that is shown books it."""
    status = posted.ok("status").out
    assert "not complete; its opening balance of 1000.00 is not booked (cleared journal open)" in status
    with unchanged(posted):
        done = posted("reconcile", "1010", "--date", "2025-01-31", "--balance", "2446.40")
    assert done.code == 1 and "before its first row, on 2025-01-02" in done.out
    command = shlex.split(done.out.splitlines()[-1])
    assert command[:2] == ["cleared", "journal"]
    posted.ok(*command[1:])
    posted.ok("reconcile", "1010", "--date", "2025-01-31", "--balance", "2446.40")
    (opening,) = [each for each in posted.entries() if each["tags"] == ["@kind=opening"]]
    assert opening["date"] == "2025-01-02" and opening["evidence"] == "the first balance in the bank's files"
    refused(posted("journal", "open"), 3, "the opening balances are posted already: " + opening["entry_id"])
    cash = posted.json("report", "cash-flow", "--period", "2025-01")["rows"]
    held = [row["1010"] for row in cash if row["label"] in ("Cash at the beginning", "Cash at the end")]
    assert held == ["1000.00", "2446.40"]
    posted.in_order()


def test_a_doubled_entry_is_named(posted: Workspace) -> None:
    posted.ok(*OPENING)
    posted.ok("journal", "add", "2025-01-10", "Coffee, from the receipt", "5070=4.50", "1010=-4.50")
    with unchanged(posted):
        done = posted("reconcile", "1010", "--date", "2025-01-31", "--balance", "2446.40")
    assert done.code == 1 and "The difference is 4.50." in done.out
    assert "the books have two of it" in done.out or "no line of the bank does" in done.out
    assert "2025-01-006" in done.out
    (account,) = [a for a in posted.json("status")["accounts"] if a["account_id"] == 1010]
    assert (account["through"], account["differs_on"], account["difference"]) == ("2025-01-09", "2025-01-10", "4.50")


def test_what_is_missing_while_a_row_waits_is_told_with_its_card(ws: Workspace) -> None:
    ws.ok(*OPENING)
    ws.drop("a.csv", chase(("01/10/2025", "GITHUB *PRO", "-4.00", "996.00"), ("01/12/2025", "TEA", "-3.00", "993.00")))
    ws.script(
        'for row in importer_parse("a.csv"):\n'
        '    queue_add_review(row["reference"], "what was this?")\n'
        'importer_mark_processed("a.csv")'
    )
    first, second = (card["id"] for card in ws.cards() if card["kind"] == "line")
    said = "is missing, while a card asks about rows of the bank (cleared queue show"
    assert f"on 2025-01-10 -4.00 {said} {first})" in ws.ok("status").out
    (account,) = [a for a in ws.json("status")["accounts"] if a["account_id"] == 1010]
    assert account["asked"] == [first]
    ws.ok("queue", "correct", first, "--account", "5020")
    assert f"on 2025-01-12 -3.00 {said} {second})" in ws.ok("status").out


def named_card(ws: Workspace, kind: str, day: str, missing: str) -> str:
    """The only open card of a kind, which status and reconcile name where the balance is wrong."""
    [card] = [each for each in ws.cards() if each["kind"] == kind]
    said = f"on {day} {missing} is missing, while a card asks about rows of the bank (cleared queue show {card['id']})"
    assert said in ws.ok("status").out
    [account] = [each for each in ws.json("status")["accounts"] if each["account_id"] == 1010]
    assert account["asked"] == [card["id"]]
    compared = ws("reconcile", "1010", "--date", "2025-01-31", "--balance", "1.00")
    assert f"(cleared queue show {card['id']}):\n  {card['title']}" in compared.out
    return str(card["id"])


def test_what_is_missing_in_a_gap_is_told_with_its_card(ws: Workspace) -> None:
    ws.ok(*OPENING)
    ws.drop("a.csv", chase(("01/10/2025", "GITHUB *PRO", "-4.00", "996.00"), ("01/20/2025", "AWS", "-10.00", "940.00")))
    ws.run("ingest")
    card = named_card(ws, "balance_gap", "2025-01-20", "-46.00")
    ws.ok("queue", "answer", card, "seen")
    assert "-46.00 is missing\n" in ws.ok("status").out


def test_a_gap_from_before_the_balance_was_right_again_is_not_named(ws: Workspace) -> None:
    ws.ok(*OPENING)
    ws.drop("a.csv", chase(("01/10/2025", "GITHUB *PRO", "-4.00", "996.00"), ("01/20/2025", "AWS", "-10.00", "940.00")))
    ws.run("ingest")
    ws.ok("journal", "add", "2025-01-15", "From the receipt", "5070=46.00", "1010=-46.00")
    ws.ok("journal", "add", "2025-01-26", "Cash", "5070=1.00", "1010=-1.00")
    ws.drop("b.csv", chase(("01/25/2025", "AWS", "-10.00", "930.00"), ("01/28/2025", "TEA", "-1.00", "929.00")))
    ws.run("ingest")
    assert "through 2025-01-25; on 2025-01-28 1.00 is missing\n" in ws.ok("status").out


def test_what_look_alikes_make_wrong_is_told_with_their_card(ws: Workspace) -> None:
    ws.ok(*OPENING)
    ws.drop("a.csv", chase(("01/10/2025", "GITHUB *PRO", "-4.00", "996.00"), ("01/20/2025", "AWS", "-10.00", "986.00")))
    ws.run("ingest")
    ws.drop("b.csv", chase(("01/11/2025", "GITHUB INC 7", "-4.00"), ("01/19/2025", "TEA", "0.00")))
    ws.run("ingest")
    named_card(ws, "near_match", "2025-01-20", "4.00")
    (card,) = (each["id"] for each in ws.cards() if each["kind"] == "near_match")
    (found,) = (each for each in ws("check", "--json").json["violations"] if each["check"] == "reconciled")
    assert found["remedy"].startswith(f"Two rows that look alike are both booked: cleared queue show {card}. Else find")


def test_what_was_left_out_though_its_balance_differs_is_told_with_its_card(ws: Workspace) -> None:
    ws.ok(*OPENING)
    ws.drop("a.csv", chase(("01/10/2025", "TEA", "-4.00", "996.00")))
    ws.run("ingest")
    ws.drop("b.csv", chase(("01/10/2025", "TEA", "-4.00", "980.00"), ("01/12/2025", "HAT", "-1.00", "979.00")))
    ws.run("ingest")
    named_card(ws, "duplicate_file", "2025-01-12", "-16.00")


def test_a_gap_of_the_running_balance_is_named_first(ws: Workspace) -> None:
    ws.drop("a.csv", chase(("01/10/2025", "GITHUB *PRO", "-4.00", "996.00")))
    ws.drop("b.csv", chase(("01/20/2025", "AWS EMEA", "-10.00", "940.00")))
    ws.run("ingest")
    ws.ok(*OPENING)
    data = ws("reconcile", "1010", "--date", "2025-01-31", "--balance", "940", "--json").json
    assert data["gaps"] == [{"after": "2025-01-10", "through": "2025-01-20", "missing": "-46.00", "opening": None}]
    assert (data["since"], data["difference"]) == ("2025-01-10", "-46.00")


def test_a_voided_line_is_missing_again(posted: Workspace) -> None:
    posted.ok(*OPENING)
    posted.ok("journal", "void", "2025-01-003", "--reason", "a test")
    data = posted("reconcile", "1010", "--date", "2025-01-31", "--balance", "2446.40", "--json").json
    (answer,) = data["explanations"]
    assert answer["reason"] == "the bank has it, the books do not"
    assert [row["text"] for row in answer["rows"]] == ["AWS EMEA"]


def test_what_is_no_account_or_amount(ws: Workspace) -> None:
    refused(ws("reconcile", "5070", "--date", "2025-01-31", "--balance", "1"), 2, "is no bank account")
    for amount in ("much", "nan", "1e400", "0.001"):
        refused(ws("reconcile", "1010", "--date", "2025-01-31", "--balance", amount), 2, "no amount of money")
    assert "nothing imported yet" in ws.ok("status").out


def test_b21_what_agrees_is_recorded_shown_and_checked(ws: Workspace) -> None:
    """B21: one commit with who; again it is none; a later change is a violation until it is withdrawn."""
    ws.ok(*OPENING)
    ws.drop("january.csv")
    ws.run("ingest")
    words = ("reconcile", "1010", "--date", "2025-01-31", "--balance", "2446.40")
    with unchanged(ws):
        ws.ok(*words, "--dry-run")
        assert ws("reconcile", "1010", "--date", "2025-01-31", "--balance", "2446.41").code == 1
        refused(ws("reconcile", "1010", "--date", "2025-02-11", "--balance", "2446.40"), 3, "is not over yet")
        refused(ws("reconcile", "1010", "--date", "0001-01-01", "--balance", "0"), 3, "the books have no entry by")
    assert ws.json(*words)["commit"] == ws.head()
    with unchanged(ws):
        assert ws.json(*words)["commit"] is None, "on record already"
    (account,) = ws.json("status")["accounts"]
    assert (account["through"], account["reconciled"]["date"]) == ("2025-01-31", "2025-01-31")
    assert "complete to the cent through 2025-01-31, reconciled through 2025-01-31 by" in ws.ok("status").out
    ws.in_order()
    refused(ws("import", "undo", "january.csv"), 3, "1010 was reconciled on 2025-01-31 by", "--despite")
    ws.ok("journal", "void", "2025-01-002", "--reason", "wrong")
    (violation,) = ws("check", "--json").json["violations"]
    assert violation["check"] == "reconciled" and "(2446.40); the books have 2450.40 now" in violation["message"]
    refused(ws("period", "close", "2025-01", "--with-pending"), 1, "[reconciled]")
    ws.ok("reconcile", "1010", "--date", "2025-01-31", "--withdraw", "voided")
    assert ws.json("check")["ok"]
    refused(ws("reconcile", "1010", "--date", "2025-01-31", "--withdraw", "voided"), 2, "was not reconciled")


def test_b21_an_undone_import_takes_its_reconciliation_along(ws: Workspace) -> None:
    ws.drop("january.csv")
    ws.run("ingest")
    ws.ok("reconcile", "1010", "--date", "2025-01-31", "--balance", "1446.40")
    ws.ok("import", "undo", "january.csv", "--despite", "the wrong file")
    assert ws.json("check")["ok"] and ws.json("status")["accounts"][0]["reconciled"] is None


def test_a_damaged_record_of_reconciliations_is_named(ws: Workspace) -> None:
    path = "books/bank/reconciliations.csv"
    ws.put(path, "account_id,date,balance,state,by,at,reason\n1010,soon,1.00,agreed,x,y,\n")
    ws.commit(path)
    messages = [v["message"] for v in ws("check", "--json").json["violations"]]
    assert any("a reconciliation is not readable" in message for message in messages)


def test_what_is_kept_of_completeness_is_no_source_of_truth(posted: Workspace) -> None:
    """Asked again, it is not worked out again; a kept answer that is older, damaged, or another's changes nothing."""

    def through() -> list[str | None]:
        return [account["through"] for account in posted.json("status")["accounts"]]

    (kept,) = (path for _ in through() for path in posted.root.glob(".cleared/books/completeness"))
    before = kept.read_bytes()
    assert through() == [None] and kept.read_bytes() == before
    posted.ok(*OPENING)
    assert through() == ["2025-01-10"]
    after = kept.read_bytes()
    for data in (before, after.replace(b"2025-01-10", b"2025-02-28"), after[:40], b""):
        kept.write_bytes(data)
        assert through() == ["2025-01-10"]
        assert kept.read_bytes() == after
    posted.ok("config", "set", "business.name", "Another")
    assert through() == ["2025-01-10"]


def test_what_is_kept_follows_what_moves_money_and_nothing_else(posted: Workspace) -> None:
    """It is what comes of the files alone; a confirmation, and another account, do not have it worked out again."""
    kept = posted.root / ".cleared/books/completeness"
    first, second, *_ = [each["entry_id"] for each in posted.entries("--status", "pending-review")]

    def read() -> tuple[str, object]:
        posted.json("status")
        found = json.loads(kept.read_bytes()[32:])  # behind its seal
        return found["made_of"], found["answer"]

    for act, moves in (
        (("queue", "approve", first), False),
        (("queue", "correct", second, "--account", "5070"), False),
        (("journal", "void", second, "--reason", "twice"), True),
        (OPENING, True),
    ):
        before = read()
        posted.ok(*act)
        after = read()
        assert (after[0] != before[0]) is moves, act
        kept.unlink()
        assert read() == after
    posted.in_order()


def test_what_is_owed_and_written_without_its_sign_is_said(ws: Workspace) -> None:
    ws.ok("journal", "add", "2025-01-10", "Coffee", "5070=4.50", "2010=-4.50")
    ws.put_config(ws.read("config.yaml").replace("ledger_account: 1010", "ledger_account: 2010", 1))
    done = ws("reconcile", "2010", "--date", "2025-01-31", "--balance", "4.50")
    assert done.code == 1 and "What is owed is negative: --balance -4.50\n" in done.out


def test_a_statement_counts_through_the_day_of_its_closing_balance(ws: Workspace) -> None:
    """Nothing moved in the last days of the month: the bank has said so, the books are complete through it."""
    text = write_camt(replace(MONTH, lines=LINES[:4]))
    at = text.rindex("2025-01-10", 0, text.index("<Ntry>"))
    file = ws.root.parent / "january.xml"
    file.write_text(text[:at] + "2025-01-31" + text[at + 10 :])
    ws.ok("bank", "add", str(file), "--account", "checking", "--yes")
    ws.ok("journal", "open")
    assert [account["through"] for account in ws.json("status")["accounts"]] == ["2025-01-31"]
    ws.drop("february.csv", chase(("02/03/2025", "SHOP", "-1.00", "2445.40")))
    ws.run("ingest")
    assert not [card for card in ws.cards() if card["kind"] == "balance_gap"]
    assert [account["through"] for account in ws.json("status")["accounts"]] == ["2025-02-03"]
    ws.in_order()


def compare(ws: Workspace, balance: str) -> str:
    done = ws("reconcile", "1010", "--date", "2025-02-05", "--balance", balance, "--dry-run")
    assert done.code == 1
    return done.out


def test_the_commands_that_end_a_corrected_amount_are_named(posted: Workspace) -> None:
    """A file without the bank's ids brings a corrected row as another one: both are booked."""
    for name, amount in (("a.csv", "-77.00"), ("b.csv", "-87.00")):
        posted.drop(name, chase(("02/03/2025", "SHOP", amount)))
        posted.run("ingest")
    void = "cleared journal void 2025-02-001 --reason"
    told = compare(posted, "1359.40")
    assert f"  {void} …\n  cleared queue answer CARD ignore\n" in told
    posted.ok(*shlex.split(void)[1:], "the bank corrected it")
    (card,) = (c["id"] for c in posted.cards() if c["kind"] == "line")
    posted.ok("queue", "answer", card, "ignore")
    posted.ok("reconcile", "1010", "--date", "2025-02-05", "--balance", "1359.40")
    posted.in_order()


def test_a_gap_of_twice_the_balance_may_be_chance(posted: Workspace) -> None:
    """What else explains it is told, too."""
    posted.drop("a.csv", chase(("02/03/2025", "SHOP", "-2892.80")))
    posted.run("ingest")
    told = compare(posted, "1446.40")
    assert "It may be the same amount with the other sign" in told and "--balance -1446.40" in told
    assert "2025-02-001  SHOP" in told and "journal void 2025-02-001" in told
