"""A suggestion on a card, taken with one key; the same for scripts, recorded like every read."""

from __future__ import annotations

from harness import Workspace, chase

FEBRUARY = chase(("02/03/2025", "COFFEE 0231", "-4.80"), ("02/04/2025", "COFFEE 0977", "-5.10"))


def test_b26_a_card_suggests_and_y_takes_it(posted: Workspace) -> None:
    posted.ok("queue", "correct", "2025-01-004", "--account", "5070")
    posted.drop("february.csv", FEBRUARY)
    posted.run("ingest")
    done = posted.process("review", stdin=b"s\ny\nq\n")
    assert done.code == 0, done
    for part in ("Suggested:", "5070 Meals", "1 of 1 COFFEE went to 5070, last 2025-01-10", "y Take 5070 Meals"):
        assert part in done.out, done.out
    assert "Corrected: COFFEE 0231" in done.out
    assert posted.json("journal", "balance", "5070")[0]["balance"] == "9.30"
    posted.in_order()


def test_a_loans_payment_is_split_as_the_last_one_and_y_takes_it(ws: Workspace) -> None:
    for month in (1, 2):
        ws.drop(f"{month}.csv", chase((f"0{month}/15/2025", f"LENDER {month}04", "-1200.00")))
        ws.run("ingest")
        if month == 1:
            ws.ok("split", "2025-01-001", "2500=1000.00", "5150=200.00")
    done = ws.process("review", stdin=b"y\nq\n")
    assert "1 of 1 LENDER of this amount were split so, last 2025-01-15" in done.out, done.out
    assert "y Take the split 2500" in done.out and "Corrected: LENDER 204" in done.out
    assert [ws.json("journal", "balance", n)[0]["balance"] for n in ("2500", "5150")] == ["2000.00", "400.00"]
    ws.in_order()


def test_a_transfer_is_proposed_taken_with_y_and_not_again_where_it_was_none(ws: Workspace) -> None:
    """Refused once, it is not asked for these payees again."""
    text = ws.read("config.yaml")
    second = (
        "  - id: savings\n    name: Savings\n    type: savings\n    ledger_account: 1020\n    format: chase_checking\n"
        "    match: { folder: savings }\n"
    )
    ws.put_config(text.replace("\n  # A second account", f"\n{second}\n  # A second account", 1))
    for month, out, into in ((1, "TO SAVINGS", "FROM CHECKING"), (2, "DEPOSIT", "LOTTERY"), (3, "DEPOSIT", "LOTTERY")):
        ws.drop(f"{month}.csv", chase((f"0{month}/20/2025", out, f"-{month}00.00")))
        ws.drop(f"savings/{month}.csv", chase((f"0{month}/22/2025", into, f"{month}00.00")))
        ws.run("ingest")
        waiting = [c for c in ws.cards() if c["kind"] == "transfer"]
        if month == 1:
            done = ws.process("review", stdin=b"y\ny\ny\nq\n")
            print(done.out)
            assert "a transfer: 100.00 reached 1020 on 2025-01-22 (FROM CHECKING)" in done.out, done.out
            assert len(ws.json("transfers")["pairs"]) == 1
        elif month == 2:
            ws.ok("queue", "answer", waiting[0]["id"], "different")
        else:
            done = ws.process("review", stdin=b"s\ns\ns\ns\nq\n")
            assert not waiting and "a transfer:" not in done.out
    ws.in_order()


def test_a_script_asks_for_it(posted: Workspace) -> None:
    posted.ok("queue", "correct", "2025-01-004", "--account", "5070")
    ran = posted.script('suggest_account("COFFEE 12", -4)')
    assert ran["result"]["account_id"] == 5070 and ran["result"]["evidence"].startswith("1 of 1 COFFEE")
    assert posted.script('suggest_account("NOBODY KNOWS", -4)', name="other")["result"] is None
