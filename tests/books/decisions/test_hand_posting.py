"""Entries that a person writes or splits: balanced, in one commit, taken back by undo, never in a closed month."""

from __future__ import annotations

import pytest
from harness import Workspace, refused, unchanged


def test_an_entry_is_written_and_taken_back(posted: Workspace) -> None:
    done = posted.ok("journal", "add", "2025-01-31", "Depreciation", "5220=120.00", "1590=-120.00", "--note", "a year")
    assert "2025-01-005 is posted: 120.00" in done.out
    (entry,) = posted.entries("--text", "Depreciation")
    assert (entry["status"], entry["amount"], entry["notes"]) == ("user-confirmed", "120.00", "a year")
    assert posted.git("log", "-1", "--format=%s").strip() == "post: 2025-01-005 Depreciation"
    assert posted.trailers()["By"]
    posted.in_order()
    posted.ok("queue", "undo")
    assert posted.entries("--text", "Depreciation")[0]["status"] == "voided"
    assert posted.json("journal", "balance", "5220")[0]["balance"] == "0.00"
    posted.in_order()


def test_a_key_whose_entry_git_took_back_names_no_other_entry(posted: Workspace) -> None:
    """Also where the line stays that attests the decision, since others came after it."""
    words = ("journal", "add", "2025-01-31", "Depreciation", "5220=120.00", "1590=-120.00", "--key", "january")
    posted.ok(*words)
    keyed = posted.head()
    posted.ok("journal", "add", "2025-02-28", "Depreciation", "5220=120.00", "1590=-120.00")
    posted.git("revert", "--no-edit", keyed)
    by = f"taken back already by git, in commit {posted.head()[:7]}"
    posted.ok("journal", "add", "2025-01-30", "Another", "5220=1.00", "1590=-1.00")
    assert posted.entries("--text", "Another")[0]["entry_id"] == "2025-01-005"
    with unchanged(posted):
        refused(posted(*words), 3, "was 2025-01-005", by, "another key")


def test_an_entry_on_a_bank_account_is_warned_of(posted: Workspace) -> None:
    done = posted.ok("journal", "add", "2025-01-31", "Cash for stamps", "5060=5", "1010=-5")
    assert "posted a second time" in done.err
    posted.in_order()


REFUSED = {
    "not balanced": (["2025-01-31", "x", "5220=120.00", "1590=-119.99"], 1, "do not balance"),
    "one line": (["2025-01-31", "x", "5220=120.00"], 1, "at least two lines"),
    "an unknown account": (["2025-01-31", "x", "5999=1", "1590=-1"], 1, "5999"),
    "fractions of a cent": (["2025-01-31", "x", "5220=0.001", "1590=-0.001"], 2, "no amount of money"),
    "not a number": (["2025-01-31", "x", "5220=nan", "1590=-1"], 2, "no amount of money"),
    "a year that is mistyped": (["2099-01-31", "x", "5220=1", "1590=-1"], 2, "more than a year ahead"),
    "an account against itself": (["2025-01-31", "x", "5220=1", "5220=-1"], 2, "all lines are on account 5220"),
    "an underline": (["2025-01-31", "x", "5220=1_000", "1590=-1_000"], 2, "such as 5060=1250.00"),
    "no day": (["January", "x", "5220=1", "1590=-1"], 2, "is not a day"),
    "no text": (["2025-01-31", " ", "5220=1", "1590=-1"], 2, "description"),
    "no amount": (["2025-01-31", "x", "5220", "1590=-1"], 2, "is not ACCOUNT=AMOUNT"),
    "an exponent": (["2025-01-31", "x", "5220=1E+3", "1590=-1000"], 2, "is not ACCOUNT=AMOUNT"),
    "a mark of the program": (["2025-01-31", "x", "5220=1", "1590=-1", "--tag", "@kind=opening"], 2, "not a tag"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_entry_can_be_is_refused(ws: Workspace, name: str) -> None:
    argv, code, text = REFUSED[name]
    with unchanged(ws):
        refused(ws("journal", "add", *argv), code, text)


def test_a_closed_month_takes_no_written_entry(posted: Workspace) -> None:
    posted.ok("period", "close", "2025-01", "--with-pending", "--despite", "a test")
    with unchanged(posted):
        refused(posted("journal", "add", "2025-01-31", "x", "5220=1", "1590=-1"), 1, "closed through 2025-01-31")
        refused(posted("queue", "undo"), 3, "")


def test_an_entry_is_split_over_accounts_and_taken_back(posted: Workspace) -> None:
    done = posted.ok("split", "2025-01-004", "5060=3.00", "5070=1.50")
    assert "Split: 2025-01-004" in done.out
    assert posted.json("journal", "balance", "5070")[0]["balance"] == "1.50"
    posted.in_order()
    posted.ok("queue", "undo")
    assert posted.json("journal", "balance", "5070")[0]["balance"] == "0.00"
    posted.in_order()


def test_a_split_that_is_not_the_whole_is_refused(posted: Workspace) -> None:
    with unchanged(posted):
        refused(posted("split", "2025-01-004", "5060=3.00", "5070=1.00"), 1, "sum is 4.00, and must be 4.50")


def test_of_several_faults_each_names_its_field_once(posted: Workspace) -> None:
    with unchanged(posted):
        done = posted("journal", "add", "1960-01-01", "x", "5999=1", "1590=-1")
    refused(done, 1, "cleared: date: 1960-01-01 lies outside", "; lines: account 5999 does not exist")
