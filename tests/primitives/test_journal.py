"""Rows B1–B5, B16, B23: what a script posts, reads and voids, by the files and commands a user has."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest
from harness import Workspace, csv_text, fails, journal_rows, nothing_posted, refused, unchanged
from terminals import run_on_terminal

POST = 'journal_add_double("2025-01-03", "GITHUB", 5020, 1010, "4.00")'


def test_b1_legs_in_the_file_of_the_month(ws: Workspace) -> None:
    """B1: legs YYYY-MM-001a/b, 14 columns, in the right month's file; ids count per month and are given at once."""
    found = ws.script(
        'a = journal_add_double(date="2025-01-03", description="one", debit_account=5020, credit_account=1010,\n'
        '    amount=4, counterparty="GitHub", reference="R1", confidence=0.98, status="auto-confirmed", evidence="e")\n'
        'b = journal_add_double("2025-02-28", "two", 5030, 1010, "5.50")\n'
        'c = journal_add_double("2025-01-31", "three", 5030, 1010, 1.25)\n'
        '[a["entry_id"], b["entry_id"], c["entry_id"], a["duplicate"]]'
    )
    assert found["result"] == ["2025-01-001", "2025-02-001", "2025-01-002", False]
    assert ws.read("books/2025/01/journal.csv") == (
        "entry_id,date,account_id,description,debit,credit,counterparty,reference,confidence,status,evidence,"
        "receipt_hash,tags,notes\n"
        "2025-01-001a,2025-01-03,5020,one,4.00,,GitHub,R1,0.98,auto-confirmed,e,,,\n"
        "2025-01-001b,2025-01-03,1010,one,,4.00,GitHub,R1,0.98,auto-confirmed,e,,,\n"
        "2025-01-002a,2025-01-31,5030,three,1.25,,,,0.00,pending-review,,,,\n"
        "2025-01-002b,2025-01-31,1010,three,,1.25,,,0.00,pending-review,,,,\n"
    )
    assert ws.read("books/2025/02/journal.csv").count("\n") == 3
    assert ws.git("log", "-1", "--format=%s").strip() == "agent: probe", "auto_commit commits what was staged"
    ws.in_order()


def test_b1_leg_ids_are_accepted_wherever_entry_ids_are(posted: Workspace) -> None:
    """B1: commands and primitives accept both."""
    assert (
        posted.script('journal_update_status("2025-01-002b", "auto-confirmed")["entry_id"]')["result"] == "2025-01-002"
    )
    done = posted.json("journal", "void", "2025-01-003a", "--reason", "wrong")
    assert done["entry_id"] == "2025-01-003"
    refused(posted("journal", "void", "2025-01-004c", "--reason", "x"), 1, "2025-01-004c", "journal list")


def test_b2_every_violation_is_listed_and_nothing_is_written(ws: Workspace) -> None:
    """B2: the six invariants: damage of each kind is found by ``check``, all at once, each with its place."""
    ws.script("for i in range(8):\n    " + POST)
    path = "books/2025/01/journal.csv"
    rows = ws.read(path).splitlines()

    def edit(leg: str, old: str, new: str) -> None:
        at = next(i for i, r in enumerate(rows) if r.startswith(leg))
        assert old in rows[at]
        rows[at] = rows[at].replace(old, new)

    edit("2025-01-001a", ",4.00,", ",4.01,")  # 1 balanced
    edit("2025-01-002a", ",4.00,,", ",4.00,4.00,")  # 2 one side
    edit("2025-01-003a", ",5020,", ",5999,")  # 3 accounts
    edit("2025-01-004a", "2025-01-03", "2025-02-03")  # 4 month
    edit("2025-01-006a", "2025-01-006a", "2025-01-005a")  # 5 ids
    edit("2025-01-007a", ",4.00,", ",4.000,")  # 6 exact
    edit("2025-01-008a", "pending-review", "approved")
    ws.put(path, "\n".join(rows) + "\n")
    before = ws.read(path)
    done = ws("check", "--json")
    assert done.code == 1
    found = done.json["violations"]
    assert {"balanced", "one_side", "account_exists", "month", "ids", "exact", "format", "unchanged"} <= {
        v["check"] for v in found
    }
    for v in found:
        assert v["remedy"] and v["message"] and (v["place"] or v["record_id"])
    by_check = {v["check"]: v for v in found}
    assert by_check["account_exists"]["record_id"] == "2025-01-003"
    assert ws.read(path) == before
    with unchanged(ws):
        refused(ws("agent", "run", "ingest"), 4, path, "git checkout HEAD -- FILE")
    text = ws("check")
    assert text.code == 1 and "[balanced]" in text.out and "2025-01-001" in text.out


@pytest.mark.parametrize(
    ("kind", "damage"),
    [
        ("edited", lambda t: t.replace("4.00", "5.00")),
        ("deleted", lambda t: "".join(x for x in t.splitlines(True) if not x.startswith("2025-01-002"))),
        ("duplicated", lambda t: t + "".join(x for x in t.splitlines(True) if x.startswith("2025-01-002"))),
        ("torn", lambda t: t[:-9]),
        ("emptied", lambda t: ""),
        ("binary", lambda t: "\0" + t),
    ],
)
def test_b2_damage_by_hand_is_found(posted: Workspace, kind: str, damage: object) -> None:
    """B2: edited amount, deleted row, duplicated id, torn last line: named, and no run works on top of it."""
    path = "books/2025/01/journal.csv"
    posted.put(path, damage(posted.read(path)))  # type: ignore[operator]
    done = posted("check", "--json")
    assert done.code == 1 and done.json["violations"], kind
    assert any(path in (v["place"] or "") for v in done.json["violations"])
    with unchanged(posted):
        refused(posted("agent", "run", "ingest"), 4, path)
        refused(posted("journal", "void", "2025-01-001", "--reason", "x"), 4, path)


def test_b2_damage_that_was_committed_by_hand_is_found(posted: Workspace) -> None:
    """B2: a commit that touched the books without a run or a decision is named."""
    path = "books/2025/01/journal.csv"
    posted.put(path, posted.read(path).replace("AWS EMEA", "AWS"))
    commit = posted.commit(path, message="tidy up")
    done = posted("check", "--json")
    assert done.code == 1
    [violation] = done.json["violations"]
    assert (
        violation["check"] == "provenance" and commit[:10] in violation["message"] and "tidy up" in violation["message"]
    )


def test_who_answers_for_a_commit_is_shown_its_rows_and_asked(posted: Workspace) -> None:
    """All that an acceptance vouches for is shown first; who says no has accepted nothing."""
    path = "books/2025/01/journal.csv"
    posted.put(path, posted.read(path).replace("COFFEE", "TEA"))
    commit = posted.commit(path, message="tea")
    argv = ["accept", commit, "--reason", "it was tea"]
    code, shown = run_on_terminal(posted.root, argv, [(f"Answer for commit {commit[:10]}?", "n")])
    assert code == 1 and f"- {path}" in shown and "TEA" in shown and "COFFEE" in shown, shown
    assert posted.head() == commit
    code, shown = run_on_terminal(posted.root, argv, [(f"Answer for commit {commit[:10]}?", "y")])
    assert code == 0 and "is accepted" in shown, shown


def test_b2_a_commit_by_hand_can_be_answered_for(posted: Workspace) -> None:
    """B2: a person says that such a commit is right, with a reason; nobody else's commits are touched by that."""
    path = "books/2025/01/journal.csv"
    for word in ("TEA", "MILK"):
        posted.put(path, re.sub("COFFEE|TEA", word, posted.read(path)))
        commit = posted.commit(path, message=f"make it {word}")
    with unchanged(posted):
        refused(posted("accept", commit, "--reason", " "), 2, "reason")
        refused(posted("accept", "nowhere", "--reason", "x"), 2, "no commit")
        refused(posted("accept", "HEAD~2", "--reason", "x"), 3, "came from a run")
    assert posted.json("accept", commit, "--reason", "it was milk")["accepted"] == commit
    assert posted.git("log", "-1", "--format=%s").strip() == f"confirm: commit {commit[:7]}: it was milk"
    [violation] = posted("check", "--json").json["violations"]
    assert "make it TEA" in violation["message"]
    posted.ok("accept", "HEAD~2", "--reason", "tea before milk")
    assert posted.json("check")["ok"]


def test_the_card_of_an_entry_that_was_confirmed_by_hand_can_be_settled(posted: Workspace) -> None:
    path = "books/2025/01/journal.csv"
    (card,) = (each for each in posted.cards() if "COFFEE" in str(each["title"]))
    rows = posted.read(path).splitlines(keepends=True)
    rows = [row.replace("pending-review", "user-confirmed") if "COFFEE" in row else row for row in rows]
    posted.put(path, "".join(rows))
    posted.ok("accept", posted.commit(path, message="it is coffee"), "--reason", "it is")
    posted.ok("queue", "approve", str(card["id"]))
    assert card["id"] not in [each["id"] for each in posted.cards()]
    posted.in_order()
    with unchanged(posted):
        refused(posted("queue", "approve", str(card["id"])), 3, "")
        refused(posted("queue", "approve", str(card["entry_id"])), 3, "user-confirmed already")


def test_b23_entries_that_wait_keep_a_period_open_unless_told_otherwise(posted: Workspace) -> None:
    """B23: closing names them; what corrects them later lands in the first open period, the closed figures stay."""
    before = posted.json("journal", "balance", "--as-of", "2025-01-31")
    with unchanged(posted):
        refused(
            posted("period", "close", "2025-01"),
            3,
            "2 decisions about the time up to 2025-01-31 wait",
            "2025-01-004 2025-01-10 4.50 COFFEE",
            "--with-pending",
        )
    posted.ok("period", "close", "2025-01", "--with-pending", "--reason", "due")
    assert posted.git("log", "-1", "--format=%s").strip() == "close: through 2025-01-31, with 2 pending"
    assert posted.json("period", "list")[0]["reason"] == "due; with 2 decisions pending"
    voided = posted.json("journal", "void", "2025-01-002", "--reason", "not ours")
    assert voided["reversal"] == "2025-02-001"
    assert posted.json("journal", "balance", "--as-of", "2025-01-31") == before
    assert posted.json("check")["ok"]


def test_b2_a_deleted_journal_file_is_found(posted: Workspace) -> None:
    """B2: the whole month's file gone."""
    (posted.root / "books/2025/01/journal.csv").unlink()
    done = posted("check", "--json")
    assert done.code == 1
    assert any("2025/01/journal.csv" in str(v["place"]) for v in done.json["violations"])


def test_b2_unbalanced_lines_are_refused(ws: Workspace) -> None:
    """B2: legs that do not balance, both sides, no side, one leg."""
    fails(
        ws,
        'journal_add("2025-01-03", "x", [{"account_id": 5020, "debit": 4}, {"account_id": 1010, "credit": 3}])',
        "journal_add",
        "debits 4.00 and credits 3.00 do not balance",
        "probe.py:5",
    )
    fails(
        ws,
        'journal_add("2025-01-03", "x", [{"account_id": 5020, "debit": 4, "credit": 4}, {"account_id": 1010}])',
        "lines[0]",
        "exactly one of debit and credit",
    )
    fails(ws, 'journal_add("2025-01-03", "x", [{"account_id": 5020, "debit": 4}])', "at least two lines")
    fails(ws, 'journal_add("2025-01-03", "x", [])', "at least two lines")
    fails(ws, 'journal_add("2025-01-03", "x", [{"account_id": 5020, "debt": 4}, {}])', "debt", "lines")
    fails(
        ws,
        'journal_add("2025-01-03", "x", [{"account_id": 5020, "debit": -4}, {"account_id": 1010, "debit": 4}])',
        "-4",
    )


@pytest.mark.parametrize(
    "amount",
    [
        "0",
        "-1",
        "0.0",
        '"0.00"',
        '"-0.01"',
        'float("nan")',
        'float("inf")',
        '-float("inf")',
        '"NaN"',
        '"Infinity"',
        "1.005",
        '"1.005"',
        "1e-9",
        '"1e2"',
        '"1,000.00"',
        '"$4"',
        '" 4"',
        '""',
        "None",
        "True",
        "[4]",
        '"４"',
        "10**13",
        "10**40",
        "1e300",
        '"9" * 50',
        "12345678901234567.89",
        "0.001",
        '"4.000000000000000000001"',
    ],
)
def test_b3_amounts_that_are_refused(ws: Workspace, amount: str) -> None:
    """B3: 0, −1, NaN, inf, finer than a cent, absurdly large, not a number: refused by name and line."""
    fails(
        ws, f'journal_add_double("2025-01-03", "x", 5020, 1010, {amount})', "journal_add_double", "amount", "probe.py:5"
    )


def test_b3_amounts_that_are_accepted(ws: Workspace) -> None:
    """B3: "0.30", Decimal, int, and 0.1 + 0.2 within rounding are 0.30; the bound itself is accepted."""
    amounts = ['"0.30"', "0.1 + 0.2", "0.3", "journal_balance(1010) + 1", "7", "4.00 * 1", "1000000000000", "1.10 * 3"]
    body = "".join(f'journal_add_double("2025-01-03", "x", 5020, 3010, {a})\n' for a in amounts)
    found = ws.script(body)
    assert [e["amount"] for e in found["entries"]] == [
        "0.30",
        "0.30",
        "0.30",
        "1.00",
        "7.00",
        "4.00",
        "1000000000000.00",
        "3.30",
    ]
    ws.in_order()


@pytest.mark.parametrize(
    ("currency", "good", "stored", "bad"),
    [("JPY", "1250", "1250", "12.5"), ("BHD", "1.005", "1.005", "1.0005")],
)
def test_b3_places_follow_the_currency(ws: Workspace, currency: str, good: str, stored: str, bad: str) -> None:
    """B3: ISO 4217: the yen has no decimals, the dinar three."""
    ws.config(f"business.currency={currency}")
    assert ws.script(f'journal_add_double("2025-01-03", "x", 5020, 1010, "{good}")')["entries"][0]["amount"] == stored
    assert f",{stored}," in ws.read("books/2025/01/journal.csv")
    fails(ws, f'journal_add_double("2025-01-03", "x", 5020, 1010, "{bad}")', "finer than the currency", bad)
    ws.in_order()


@pytest.mark.parametrize(
    ("debit", "credit", "said"),
    [
        ("5999", "1010", "account 5999 does not exist"),
        ("1010", "1010", "both 1010"),
        ('"5020"', "1010", "not an account number"),
        ("5020.0", "1010", "not an account number"),
        ("True", "1010", "not an account number"),
        ("None", "1010", "not an account number"),
        ("-5020", "1010", "not an account number"),
        ("0", "1010", "not an account number"),
        ("10**30", "1010", "not an account number"),
    ],
)
def test_b3_accounts_that_are_refused(ws: Workspace, debit: str, credit: str, said: str) -> None:
    """Bad input: unknown, equal, non-integer accounts; the nearest is named."""
    fails(ws, f'journal_add_double("2025-01-03", "x", {debit}, {credit}, 4)', said, "account", "probe.py:5")


def test_closed_and_heading_accounts_are_refused(ws: Workspace) -> None:
    """Bad input: a closed account from its day on, a heading always; before that day the closed one still works."""
    header, *rows = journal_rows(ws.read("accounts/chart-of-accounts.csv"))
    header = [*header[:6], "code", "currency", "status", "closed_on"]
    rows = [[*r[:6], "", "", *(("closed", "2025-02-01") if r[0] == "5040" else ("", ""))] for r in rows]
    rows.append(["5041", "Below", "expense", "5050", "", "", "", "", "", ""])
    ws.put("accounts/chart-of-accounts.csv", csv_text([header, *rows]))
    ws.commit("accounts/chart-of-accounts.csv")
    fails(ws, 'journal_add_double("2025-02-01", "x", 5040, 1010, 4)', "5040", "is closed since 2025-02-01")
    fails(ws, 'journal_add_double("2025-01-01", "x", 5050, 1010, 4)', "5050", "is a heading")
    assert ws.script('journal_add_double("2025-01-31", "x", 5040, 1010, 4)')["entries"]
    listed = {a["account_id"]: a for a in ws.json("accounts", "list")}
    assert listed[5040]["status"] == "closed"


@pytest.mark.parametrize(
    ("day", "said"),
    [
        ('"2025-02-30"', "there is no day 2025-02-30"),
        ('"2025-02-29"', "there is no day"),
        ('"0001-01-01"', "lies outside 1970-01-01"),
        ('"9999-12-31"', "lies outside"),
        ('"0000-01-01"', "no day"),
        ('"2025-1-3"', "YYYY-MM-DD"),
        ('"01/03/2025"', "YYYY-MM-DD"),
        ('"20250103"', "YYYY-MM-DD"),
        ('"2025-01-03T00:00:00"', "YYYY-MM-DD"),
        ('"２０２５-01-03"', "YYYY-MM-DD"),
        ("20250103", "not a date"),
        ("None", "not a date"),
        ('""', "YYYY-MM-DD"),
    ],
)
def test_dates_that_are_refused(ws: Workspace, day: str, said: str) -> None:
    """Bad input: Feb 30, year 1, year 9999 (bounds in config), other notations."""
    fails(ws, f'journal_add_double({day}, "x", 5020, 1010, 4)', said, "date", "probe.py:5")


def test_bounds_of_dates_and_amounts_are_in_the_config(ws: Workspace) -> None:
    """Bad input: the bounds can be moved."""
    ws.config("limits.max_date=2030-12-31", "limits.max_amount=100")
    fails(ws, 'journal_add_double("2031-01-01", "x", 5020, 1010, 4)', "2030-12-31", "limits.max_date")
    fails(ws, 'journal_add_double("2025-01-01", "x", 5020, 1010, "100.01")', "larger than 100", "limits.max_amount")
    assert ws.script('journal_add_double("2030-12-31", "x", 5020, 1010, 100)')["entries"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ('status="confirmed"', "not a status"),
        ('status="user-confirmed"', "only a person's decision"),
        ('status="voided"', "journal_void"),
        ("status=None", "not a status"),
        ("confidence=1.01", "between 0 and 1"),
        ("confidence=-0.01", "between 0 and 1"),
        ('confidence=float("nan")', "between 0 and 1"),
        ('confidence="high"', "not a number"),
        ("confidence=True", "not a number"),
        ('counterpart="x"', "Did you mean counterparty?"),
        ("counterparty=5", "not a text"),
        ('reference="a\\nb"', "one line"),
        ('evidence="a\\0b"', "NUL"),
        ('evidence="é" * 6000', "12000 bytes"),
        ('reference="f1:000000000000000000000000"', "names no bank line"),
        ("description=4", "description"),
        ("date=None", "date"),
        ('tags=["x"]', "no argument 'tags'"),
    ],
)
def test_arguments_that_are_refused(ws: Workspace, arguments: str, said: str) -> None:
    """Bad input: unknown status, confidence outside 0–1, unknown arguments, odd texts."""
    given = {
        "date": '"2025-01-03"',
        "description": '"x"',
        "debit_account": "5020",
        "credit_account": "1010",
        "amount": "4",
    }
    name = arguments.split("=")[0]
    if name in given:
        given[name], arguments = arguments.split("=", 1)[1], ""
    call = ", ".join([*(f"{k}={v}" for k, v in given.items()), *([arguments] if arguments else [])])
    fails(ws, f"journal_add_double({call})", "journal_add_double", said, "probe.py:5")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ('journal_add_double("2025-01-03", "x", 5020, 1010)', "needs amount"),
        ("journal_add_double()", "needs date"),
        ('journal_add_double("2025-01-03", "x", 5020, 1010, 4, "", "", 0, "pending-review", "", "more")', "at most 10"),
        ('journal_add_double("2025-01-03", "x", 5020, 1010, 4, date="2025-01-03")', "date twice"),
        ('journal_add_double("x", "2025-01-03", 5020, 1010, 4)', "date"),
        ('journal_add_doubel("2025-01-03", "x", 5020, 1010, 4)', "journal_add_double"),
        ('journal_void("2025-01-001")', "needs reason"),
        ('journal_void("2025-13-001", "x")', "not an entry id"),
        ('journal_void("2025-01-001", "x")', "there is no entry"),
        ('journal_void("../../x", "x")', "not an entry id"),
        ('journal_update_status("2025-01-001", "auto-confirmed")', "there is no entry"),
        ("accounts_get(9999)", "does not exist"),
        ('accounts_by_type("cash")', "not an account type"),
        ("journal_query(month=13)", "no month 13"),
        ('journal_query(year="2025")', "not a whole number"),
        ("journal_query(limit=-1)", "limit"),
        ('journal_query(status="open")', "not a status"),
        ("journal_balance(9999)", "does not exist"),
        ('queue_add_review("pending", "x")', "has not staged an entry"),
        ('queue_add_review("2025-01-009", "x")', "there is no entry"),
        ("money_allocate(10, [])", "no weights"),
        ("money_allocate(10, [0, 0])", "all zero"),
        ("money_allocate(10, [1, -1])", "not a weight"),
        ('money_allocate("1.005", [1])', "finer"),
        ('config_get("thresholds.auto_confrm")', "thresholds.auto_confirm"),
        ('config_get("llm.api_key")', "secret"),
        ('config_get("llm.api_key", "x")', "secret"),
        ('git_commit("")', "message is empty"),
        ('git_commit("a\\nb")', "one line"),
        ("git_log(0)", "limit"),
        ('ctx_emit("Not A Name")', "not an event name"),
        ('ctx_emit("a", {1: 2})', "keys of a dict"),
        ("ctx_log(5)", "str("),
    ],
)
def test_calls_that_are_refused(ws: Workspace, call: str, said: str) -> None:
    """Bad input: missing and unknown arguments, positional misuse, wrong types, of every domain."""
    fails(ws, call, said, "probe.py:5")


def test_b4_query(posted: Workspace) -> None:
    """B4: filters by status, year, month, account, text and limit, for scripts and on the command line."""
    posted.script(POST.replace("2025-01-03", "2024-12-31"))
    result = posted.script(
        "def ids(found):\n    return [e['entry_id'] for e in found]\n"
        '{"all": ids(journal_query()), "pending": ids(journal_query(status="pending-review")),\n'
        ' "year": ids(journal_query(year=2024)), "month": ids(journal_query(year=2025, month=1)),\n'
        ' "account": ids(journal_query(account=4010)), "text": ids(journal_query(text="aws")),\n'
        ' "limit": ids(journal_query(limit=2)), "none": ids(journal_query(limit=0)),\n'
        ' "both": ids(journal_query(status="auto-confirmed", account=5020, text="github"))}'
    )["result"]
    assert result == {
        "all": ["2024-12-001", "2025-01-001", "2025-01-002", "2025-01-003", "2025-01-004"],
        "pending": ["2024-12-001", "2025-01-002", "2025-01-004"],
        "year": ["2024-12-001"],
        "month": ["2025-01-001", "2025-01-002", "2025-01-003", "2025-01-004"],
        "account": ["2025-01-002"],
        "text": ["2025-01-003"],
        "limit": ["2025-01-003", "2025-01-004"],
        "none": [],
        "both": ["2025-01-001"],
    }
    for options, expected in (
        (["--month", "2024-12"], result["year"]),
        (["--status", "pending-review"], result["pending"]),
        (["--account", "4010"], result["account"]),
        (["--text", "aws"], result["text"]),
        (["--limit", "2"], result["limit"]),
    ):
        assert [e["entry_id"] for e in posted.entries(*options)] == expected
    [entry] = posted.entries("--text", "github", "--month", "2025-01")
    assert entry["lines"] == [
        {"leg_id": "2025-01-001a", "account_id": 5020, "debit": "4.00", "credit": "0.00"},
        {"leg_id": "2025-01-001b", "account_id": 1010, "debit": "0.00", "credit": "4.00"},
    ]
    for options in (["--month", "2025-13"], ["--month", "January"], ["--status", "open"], ["--limit", "-1"]):
        refused(posted("journal", "list", *options), 2)


def test_b4_a_script_reads_what_it_staged(ws: Workspace) -> None:
    """B4: reading sees base and draft."""
    found = ws.script(
        f"{POST}\n[len(journal_query()), journal_balance(1010), journal_balance(5020, 2025, 1), "
        'journal_balance(5020, as_of="2025-01-02")]'
    )
    assert found["result"] == [1, {"$decimal": "-4.00"}, {"$decimal": "4.00"}, {"$decimal": "0.00"}] or found[
        "result"
    ] == [1, "-4.00", "4.00", "0.00"]


def test_b5_accounts(ws: Workspace) -> None:
    """B5: list, get, exists and by_type match the CSV; 30 to 45 accounts."""
    header, *rows = journal_rows(ws.read("accounts/chart-of-accounts.csv"))
    listed = ws.json("accounts", "list")
    assert [str(a["account_id"]) for a in listed] == [r[0] for r in rows] and 30 <= len(rows) <= 45
    assert [a["account_name"] for a in listed] == [r[header.index("account_name")] for r in rows]
    found = ws.script(
        "[accounts_list(), accounts_get(1010), accounts_exists(1010), accounts_exists(9999), "
        'accounts_by_type("equity")]'
    )["result"]
    assert found[0] == listed
    assert found[1] == next(a for a in listed if a["account_id"] == 1010)
    assert found[2:4] == [True, False]
    assert found[4] == [a for a in listed if a["account_type"] == "equity"] and found[4]


def test_b16_void_keeps_the_original(posted: Workspace) -> None:
    """B16: a reversing entry; the original stays and is marked; balances are as before; the bank line is open again."""
    before = posted.read("books/2025/01/journal.csv")
    done = posted.json("journal", "void", "2025-01-004", "--reason", "not mine")
    assert done == {"entry_id": "2025-01-004", "reversal": "2025-01-005", "commit": posted.head()}
    after = posted.read("books/2025/01/journal.csv")
    voided = [r.replace("pending-review", "voided") if r.startswith("2025-01-004") else r for r in before.splitlines()]
    assert after.splitlines()[: len(voided)] == voided, "only the status of the voided entry changed"
    entries = {e["entry_id"]: e for e in posted.entries()}
    assert entries["2025-01-004"]["status"] == "voided" and entries["2025-01-004"]["amount"] == "4.50"
    assert entries["2025-01-005"]["tags"] == ["@rev=2025-01-004"] and entries["2025-01-005"]["evidence"] == "not mine"
    assert next(b for b in posted.json("journal", "balance") if b["account_id"] == 5030)["balance"] == "0.00"
    kinds = {c["kind"]: c for c in posted.cards()}
    assert "line" in kinds and "not mine" in kinds["line"]["title"]
    assert "2025-01-004" not in {c["entry_id"] for c in posted.cards()}
    with unchanged(posted):
        refused(posted("journal", "void", "2025-01-004", "--reason", "again"), 1, "voided already")
        refused(posted("journal", "void", "2025-01-002", "--reason", " "), 1, "reason")
        refused(posted("journal", "void", "2025-01-002"), 2)
    assert posted.git("log", "-1", "--format=%s").strip() == "void: 2025-01-004: not mine"
    posted.in_order()


def test_b16_a_script_voids_and_posts_again(posted: Workspace) -> None:
    """B16: journal_void frees the bank line; the same run may post it otherwise."""
    reference = next(e for e in posted.entries() if e["entry_id"] == "2025-01-004")["reference"]
    found = posted.script(
        'void = journal_void("2025-01-004", "better account")\n'
        f'journal_add_double("2025-01-10", "COFFEE", 5040, 1010, "4.50", reference="{reference}")\n'
        'git_commit("correct: coffee")\nvoid["entry_id"]'
    )
    assert found["result"] == "2025-01-005"
    assert [e["entry_id"] for e in found["entries"]] == ["2025-01-005", "2025-01-006"]
    assert next(b for b in posted.json("journal", "balance") if b["account_id"] == 1010)["balance"] == "1446.40"
    posted.in_order()


def test_status_moves_forwards_only(posted: Workspace) -> None:
    """journal_update_status: pending-review to auto-confirmed; a voided entry stays voided."""
    assert (
        posted.script('journal_update_status("2025-01-004", "auto-confirmed")["status"]')["result"] == "auto-confirmed"
    )
    assert next(e for e in posted.entries() if e["entry_id"] == "2025-01-004")["status"] == "auto-confirmed"
    posted.ok("journal", "void", "2025-01-004", "--reason", "x")
    fails(posted, 'journal_update_status("2025-01-004", "pending-review")', "cannot become")
    fails(posted, 'journal_update_status("2025-01-001", "user-confirmed")', "only a person's decision")
    posted.in_order()


def test_b23_closed_periods(posted: Workspace) -> None:
    """B23: nothing new is dated inside; a correction lands on the first open day; the closed balance is unchanged."""
    with unchanged(posted):
        refused(posted("period", "close", "2025-02"), 3, "not over yet")
        refused(posted("period", "close", "2025-13"), 2)
        refused(posted("period", "close", "soon"), 2)
    closed = posted.json("period", "close", "2025-01", "--reason", "done", "--with-pending")
    assert closed["through"] == "2025-01-31"
    january = posted.json("journal", "balance", "--as-of", "2025-01-31")
    fails(posted, 'journal_add_double("2025-01-31", "x", 5020, 1010, 4)', "closed through 2025-01-31", "2025-02-01")
    done = posted.json("journal", "void", "2025-01-003", "--reason", "late")
    assert done["reversal"] == "2025-02-001"
    [reversal] = posted.entries("--month", "2025-02")
    assert reversal["date"] == "2025-02-01" and "@orig_date=2025-01-09" in reversal["tags"]
    assert posted.json("journal", "balance", "--as-of", "2025-01-31") == january
    with unchanged(posted):
        refused(posted("period", "close", "2025-01"), 3, "closed through 2025-01-31 already")
        refused(posted("period", "reopen", "2025-02", "--reason", "x"), 3, "not in a closed period")
        refused(posted("period", "reopen", "2025-01", "--reason", ""), 2, "reason")
    posted.in_order()
    posted.ok("period", "reopen", "2025-01", "--reason", "found a receipt")
    assert [m["state"] for m in posted.json("period", "list")] == ["closed", "open"]
    assert posted.script('journal_add_double("2025-01-31", "x", 5020, 1010, 4)')["entries"]
    posted.in_order()


def test_what_was_filed_is_reopened_only_where_somebody_says_so(posted: Workspace) -> None:
    posted.ok("queue", "approve", *(card["id"] for card in posted.cards()))
    posted.ok("period", "close", "2025-01", "--filed")
    posted.ok("period", "close", "2025-02-05")
    posted.ok("period", "reopen", "2025-02-01", "--reason", "not filed")
    reopen = ["period", "reopen", "2025-01", "--reason", "late bill"]
    with unchanged(posted):
        refused(posted(*reopen), 3, "through 2025-01-31 were marked as filed", "--filed")
    posted.ok(*reopen, "--filed")
    posted.ok("period", "close", "2025-01")
    posted.ok(*reopen)


def test_journal_add_many_is_all_or_none(ws: Workspace) -> None:
    """journal_add_many: one call, both forms; a refusal names the index."""
    good = (
        '{"date": "2025-01-03", "description": "a", "debit_account": 5020, "credit_account": 1010, "amount": 4}, '
        '{"date": "2025-01-04", "description": "b", "tags": ["x"], "notes": "n", '
        '"lines": [{"account_id": 5020, "debit": 1}, {"account_id": 5030, "debit": 2}, '
        '{"account_id": 1010, "credit": 3}]}'
    )
    found = ws.script(f'[r["entry_id"] for r in journal_add_many([{good}])]')
    assert found["result"] == ["2025-01-001", "2025-01-002"]
    legs = [r[0] for r in journal_rows(ws.read("books/2025/01/journal.csv"))[1:]]
    assert legs == ["2025-01-001a", "2025-01-001b", "2025-01-002a", "2025-01-002b", "2025-01-002c"]
    fails(ws, f'journal_add_many([{good}, {{"date": "2025-01-03"}}])', "entries[2]", "probe.py:5")
    fails(ws, f"journal_add_many([{good.replace('5030', '5999')}])", "entries[1]", "5999")
    fails(ws, 'journal_add_many([{"date": "2025-01-03", "description": "a", "amount": 4}])', "entries[0]")
    fails(ws, "journal_add_many(5)", "journal_add_many")


def test_tags_are_the_hosts_where_they_begin_with_at(ws: Workspace) -> None:
    """BOOKS: a script cannot write @… tags."""
    lines = '[{"account_id": 5020, "debit": 4}, {"account_id": 1010, "credit": 4}]'
    fails(ws, f'journal_add("2025-01-03", "x", {lines}, tags=["@rev=2025-01-001"])', "@rev", "cannot be a tag")
    fails(ws, f'journal_add("2025-01-03", "x", {lines}, tags=["a;@rev=b"])', "cannot be a tag")
    fails(ws, f'journal_add("2025-01-03", "x", {lines}, tags=[""])', "cannot be a tag")


def test_money_allocate(ws: Workspace) -> None:
    """money_allocate: largest remainder, the parts sum to the whole, negative totals too."""
    found = ws.script(
        '[[str(p) for p in money_allocate(10, [1, 1, 1])], [str(p) for p in money_allocate("-0.05", [1, 1])],\n'
        ' [str(p) for p in money_allocate("100.00", [0.5, 0.25, 0.25])], str(sum(money_allocate("0.01", [3, 7, 9])))]'
    )["result"]
    assert found[0] == ["3.34", "3.33", "3.33"]
    assert sum(map(Decimal, found[1])) == Decimal("-0.05")
    assert found[2] == ["50.00", "25.00", "25.00"] and found[3] == "0.01"


def test_no_abort_leaves_a_gap(ws: Workspace) -> None:
    """Ids are given at staging; after a failed run the next one has the same ids."""
    fails(ws, f"{POST}\n{POST}\njournal_add_double()", "needs date", "probe.py:7")
    assert ws.script(f'{POST}["entry_id"]')["result"] == "2025-01-001"
    ws.in_order()


def test_more_than_999_entries_in_a_month(ws: Workspace) -> None:
    """reference: NNN has more digits past 999; ids sort by number."""
    spec = '{"date": "2025-01-03", "description": "a", "debit_account": 5020, "credit_account": 1010, "amount": 1}'
    ws.script(f"len(journal_add_many([{spec} for i in range(1001)]))")
    assert [e["entry_id"] for e in ws.entries("--limit", "3")] == ["2025-01-999", "2025-01-1000", "2025-01-1001"]
    assert ws.script(POST + '["entry_id"]')["result"] == "2025-01-1002"
    ws.in_order()


def test_nothing_of_a_refusal_reaches_the_books(ws: Workspace) -> None:
    """A refused entry in the middle leaves the first ones out too, also where the script went on."""
    ws.agent("probe", f"{POST}\ndef f():\n    return journal_add_double('2025-01-03', 'x', 1, 1010, 4)\nf()\n{POST}")
    with nothing_posted(ws):
        assert ws("agent", "run", "probe").code == 1
    assert ws.entries() == []


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            'journal_add_double("2025-13-01", 7, "a", 1010, "-4", colour=1)',
            ["date: ", "description: ", "debit_account: ", "amount: ", "no argument 'colour'"],
        ),
        ('journal_add_double(description="x", amount=1)', ["needs date, debit_account, credit_account"]),
        (
            'journal_add_many([{"date": "x", "description": 1}, {"date": "2025-01-03"}, 7])',
            [
                "entries[0]: date: ",
                "entries[0]: description: ",
                "entries[1]: the key 'description' is missing",
                "entries[2]: ",
            ],
        ),
        (
            'journal_add_double("1900-01-01", "x", 9998, 9998, 1, status="user-confirmed")',
            ["1900-01-01 lies outside", "account 9998 does not exist", "both 9998", "the status user-confirmed"],
        ),
        (
            'journal_add("2025-01-03", "x", [{"account_id": 9998, "debit": 2}, {"account_id": 9999, "credit": 1}],\n'
            '  tags=["@x"])',
            ["account 9998", "account 9999", "do not balance", "'@x' cannot be a tag"],
        ),
        (
            'journal_add_many([{"date": "2025-01-03", "description": "x", "debit_account": 5020, "credit_account": a,\n'
            '  "amount": 1} for a in (9998, 1010, 9999)])',
            ["entries[0].account: account 9998", "entries[2].account: account 9999"],
        ),
    ],
)
def test_b2_a_refusal_names_every_fault_of_the_call(ws: Workspace, call: str, said: list[str]) -> None:
    """B2, fault 18: of arguments that cannot be read, and of an entry that cannot be posted."""
    message = fails(ws, call)["error"]["message"]
    for text in said:
        assert text in message, message
