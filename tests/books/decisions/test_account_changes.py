"""Adding, renaming and closing accounts: one commit each, and refused where the books would be wrong."""

from __future__ import annotations

import pytest
from harness import Workspace, refused, take_ok, unchanged
from reviewers import People

CHART = "accounts/chart-of-accounts.csv"


def chart(ws: Workspace) -> dict[int, dict[str, object]]:
    return {a["account_id"]: a for a in ws.json("accounts", "list")}


def test_an_account_is_added_and_can_be_posted_to(posted: Workspace) -> None:
    before = posted.read(CHART)
    done = posted.ok("accounts", "add", "5085", "Bank fees", "--type", "expense", "--description", "Fees, of the bank")
    assert "Bank fees is account 5085 now" in done.out
    assert chart(posted)[5085]["account_type"] == "expense"
    row = '5085,Bank fees,expense,,,"Fees, of the bank"\n'
    assert posted.read(CHART).replace(row, "") == before, "the rest is as it was"
    numbers = list(chart(posted))
    assert numbers == sorted(numbers), "it stands at its number, in reports, too"
    assert posted.git("log", "-1", "--format=%s").strip() == "accounts: add 5085 Bank fees"
    posted.ok("queue", "correct", "2025-01-003", "--account", "5085")
    posted.in_order()


def test_the_list_is_what_accounts_alone_shows(ws: Workspace) -> None:
    assert ws.ok("accounts").out == ws.ok("accounts", "list").out != ""


def test_an_account_is_renamed_and_keeps_its_entries(posted: Workspace) -> None:
    posted.ok("accounts", "rename", "5020", "Software and hosting")
    assert chart(posted)[5020]["account_name"] == "Software and hosting"
    assert posted.json("journal", "balance", "5020")[0]["account_name"] == "Software and hosting"
    posted.in_order()


def test_a_closed_account_takes_no_entry_from_that_day_on(posted: Workspace) -> None:
    posted.ok("accounts", "close", "5010", "--on", "2025-02-01")
    assert chart(posted)[5010]["status"] == "closed"
    header, *rows = posted.read(CHART).splitlines()
    assert header.endswith("description,code,currency,status,closed_on")
    assert [r for r in rows if r.endswith(",,,closed,2025-02-01")] == [r for r in rows if r.startswith("5010,")]
    refused(
        posted("queue", "correct", "2025-01-003", "--account", "5010", "--date", "2025-02-02"), 1, "is closed since"
    )
    posted.in_order()


REFUSED = {
    "a number that is taken": (["add", "1010", "Other", "--type", "asset"], 3, "stands in the chart already"),
    "no number": (["add", "0", "Other", "--type", "asset"], 2, "not an account number"),
    "a name of two lines": (["add", "5085", "a\nb", "--type", "expense"], 2, "cannot be the name"),
    "no name": (["rename", "5020", "  "], 2, "cannot be the name"),
    "an unknown parent": (["add", "5085", "x", "--type", "expense", "--parent", "77"], 2, "does not exist"),
    "a parent with entries": (["add", "5085", "x", "--type", "expense", "--parent", "5020"], 3, "would be wrong then"),
    "a parent of another type": (["add", "6000", "x", "--type", "asset", "--parent", "5010"], 3, "is for expense, not"),
    "an unknown account": (["rename", "5021", "x"], 2, "does not exist"),
    "the name it has": (["rename", "1010", "Business checking"], 3, "is called Business checking already"),
    "a bank account with a balance": (["close", "1010"], 3, "has a balance of"),
    "an expense of this year": (["close", "5020", "--on", "2025-06-01"], 3, "in 2025"),
    "an unknown account to close": (["close", "77"], 2, "does not exist"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_refused_with_nothing_changed(why: str, posted: Workspace) -> None:
    argv, code, text = REFUSED[why]
    before = posted.state()
    done = posted("accounts", *argv)
    refused(done, code, text)
    assert not posted.state().changed_since(before) and posted.state().head == before.head


def test_refused_a_second_time_by_name(ws: Workspace) -> None:
    ws.ok("accounts", "close", "5010")
    refused(ws("accounts", "close", "5010"), 3, "is closed already since")
    ws.ok("accounts", "add", "5085", "Bank fees", "--type", "expense")
    refused(ws("accounts", "add", "5085", "Bank fees", "--type", "expense"), 3, "stands in the chart already")


def test_an_account_in_use_is_not_closed(ws: Workspace) -> None:
    config = ws.read("config.yaml")
    ws.put_config(config.replace("bank_accounts:", "bank_accounts:\n  - {id: spare, ledger_account: 1020}", 1))
    if ws.read("config.yaml") == config:
        ws.put_config(config + "\nbank_accounts:\n  - {id: spare, ledger_account: 1020}\n")
    take_ok(ws, "config", "approve")
    refused(ws("accounts", "close", "1020"), 3, "bank account spare")
    ws.agent("fees", "pass", "accounts: [5010]\n")
    refused(ws("accounts", "close", "5010"), 3, "agent fees")
    ws.ok("accounts", "add", "5011", "Ads online", "--type", "expense", "--parent", "5010")
    refused(ws("accounts", "close", "5010"), 3, "heading of 5011")


@pytest.mark.slow
def test_an_account_that_a_script_names_is_not_closed(posted: Workspace) -> None:
    with unchanged(posted):
        refused(posted("accounts", "close", "5020", "--on", "2026-01-01"), 3, "agent ingest (agents/ingest.py:")
    posted.ok("accounts", "add", "5271", "Shop supplies", "--type", "expense")
    posted.ok("teach", "SHOPPY", "5271", "--yes")
    refused(posted("accounts", "close", "5271"), 3, "agent ingest (agents/ingest.py:")


def test_a_closed_account_is_opened_again(posted: Workspace) -> None:
    refused(posted("accounts", "reopen", "5010"), 3, "is open")
    posted.ok("accounts", "close", "5010", "--on", "2025-01-01")
    refused(posted("queue", "correct", "2025-01-004", "--account", "5010"), 1, "cleared accounts reopen 5010")
    assert "Account 5010 is open again" in posted.ok("accounts", "reopen", "5010").out
    posted.ok("queue", "correct", "2025-01-004", "--account", "5010")
    assert chart(posted)[5010]["status"] == "open"
    posted.in_order()


def test_an_entry_of_an_earlier_day_leaves_nothing_on_a_closed_account(posted: Workspace) -> None:
    posted.ok("accounts", "add", "1025", "Old savings", "--type", "asset")
    posted.ok("accounts", "close", "1025", "--on", "2025-02-01")
    posted.ok("accounts", "close", "5010", "--on", "2026-01-01")
    with unchanged(posted):
        refused(
            posted("journal", "add", "2025-01-31", "Interest", "1025=10", "4010=-10"),
            1,
            "account 1025 Old savings is closed from 2025-02-01 on, and would have a balance of 10.00",
            "cleared accounts reopen 1025",
        )
    posted.ok("journal", "add", "2025-01-31", "In and out again", "1025=10", "1025=-10", "4010=1", "5060=-1")
    posted.ok("journal", "add", "2025-12-31", "An expense of the year before", "5010=10", "4010=-10")
    posted.in_order()


def test_an_entry_after_the_day_is_named(posted: Workspace) -> None:
    for entry_id in ("2025-01-003", "2025-01-004"):
        posted.ok("queue", "correct", entry_id, "--account", "5110")
    refused(
        posted("accounts", "close", "5110", "--on", "2024-12-01"), 3, "2 entries would be wrong then", "2025-01-006"
    )
    posted.ok("accounts", "close", "5110", "--on", "2026-01-01")
    assert chart(posted)[5110]["status"] == "closed"
    posted.in_order()


def test_only_reviewers_change_the_chart(posted: Workspace, tmp_path_factory: pytest.TempPathFactory) -> None:
    people = People(posted, tmp_path_factory.mktemp("people"), two="500")
    refused(
        people("mallory", "accounts", "add", "5085", "Bank fees", "--type", "expense"), 3, "only reviewers may decide"
    )
    people.ok("ana", "accounts", "add", "5085", "Bank fees", "--type", "expense")
    assert (
        "Signature" in posted.git("log", "-1", "--format=%B")
        or "signature" in posted.git("log", "-1", "--format=%B").lower()
    )
    posted.in_order()
