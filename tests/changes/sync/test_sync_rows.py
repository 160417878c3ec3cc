"""Accounts, rows of tables, kept values and tasks that both clones have changed: each its own, and a card for one that
both did."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from harness import Workspace, take_ok
from synced import follow, left_out
from tables import MAY, define
from tasking import LEDGER, Tasks, task

pytestmark = pytest.mark.slow

Two = tuple[Workspace, Workspace]


@pytest.fixture
def two(ws: Workspace, tmp_path: Path) -> Iterator[Two]:
    """Two clones of books."""
    own, other, _ = follow(ws, tmp_path)
    yield own, other


def do_both(two: Two, act: Callable[[Workspace, str], object], theirs: str, mine: str) -> None:
    """The other clone does one thing and pushes; then this one does another."""
    act(two[1], theirs)
    two[1].ok("sync")
    act(two[0], mine)


def add_account(ws: Workspace, text: str) -> None:
    number, name = text.split(" ", 1)
    ws.ok("accounts", "add", number, name, "--type", "expense")


def test_both_have_added_accounts(two: Two) -> None:
    ws, other = two
    do_both(two, add_account, "5998 Horses", "5999 Boats")
    ws.ok("journal", "add", "2025-02-05", "a boat", "5999=9", "1010=-9")
    ws.ok("accounts", "rename", "5999", "Ships")
    assert not any(step["left_out"] for step in ws.json("sync")["steps"])
    other.ok("sync")
    for each in two:
        names = {a["account_id"]: a["account_name"] for a in each.json("accounts", "list")}
        assert (names[5998], names[5999]) == ("Horses", "Ships")
        each.in_order()


@pytest.mark.parametrize(("mine", "why"), [("5998 Boats", "5998 is another one"), ("5999 horses", "Horses, too")])
def test_accounts_of_one_number_or_name_are_a_card(two: Two, mine: str, why: str) -> None:
    do_both(two, add_account, "5998 Horses", mine)
    left_out(two[0], why)


def test_an_account_is_not_closed_over_what_others_posted(two: Two) -> None:
    ws, other = two
    other.ok("journal", "add", "2025-02-05", "theirs", "5060=9", "1010=-9")
    other.ok("sync")
    ws.ok("accounts", "close", "5060", "--on", "2025-02-01")
    left_out(ws, "others have posted")


def test_nothing_is_posted_to_an_account_that_others_have_closed(two: Two) -> None:
    ws, other = two
    other.ok("accounts", "close", "5060", "--on", "2025-02-01")
    other.ok("sync")
    ws.ok("journal", "add", "2025-02-05", "mine", "5060=9", "1010=-9")
    left_out(ws, "5060")
    assert "mine" not in [entry["description"] for entry in ws.entries()]


def put(ws: Workspace, text: str) -> None:
    sku, price = text.split("=")
    ws.script(
        f'table_put("prices", {{"sku": "{sku}", "price": "{price}"}})', header=MAY, name=f"put{sku}{price[0]}".lower()
    )


def test_both_have_put_rows(two: Two) -> None:
    ws, other = two
    define(ws)
    put(ws, "A=1.00")
    ws.ok("sync")
    other.ok("sync")
    do_both(two, put, "B=2.00", "C=3.00")
    put(ws, "A=4.00")
    assert not any(step["left_out"] for step in ws.json("sync")["steps"])
    other.ok("sync")
    assert other.read("records/prices.csv") == "sku,price,since\nA,4.00,\nB,2.00,\nC,3.00,\n"
    other.in_order()


def test_a_row_that_both_put_is_a_card(two: Two) -> None:
    ws, other = two
    define(ws)
    ws.ok("sync")
    other.ok("sync")
    do_both(two, put, "A=2.00", "A=2.00")
    assert not any(step["left_out"] for step in ws.json("sync")["steps"])
    other.ok("sync")
    do_both(two, put, "A=5.00", "A=6.00")
    put(ws, "D=1.00")
    left = [step["left_out"] or "" for step in ws.json("sync")["steps"] if step["kind"] == "run"]
    assert "prices/A was changed there" in left[0] and not left[1], left
    assert ws.read("records/prices.csv") == "sku,price,since\nA,5.00,\nD,1.00,\n"
    ws.in_order()


def test_rows_are_not_put_under_other_columns(two: Two) -> None:
    ws, other = two
    define(ws)
    put(ws, "A=1.00")
    ws.ok("sync")
    other.ok("sync")
    put(ws, "B=2.00")
    schema = other.read("records/prices.yaml")
    other.put("records/prices.yaml", f"{schema}# more\n")
    take_ok(other, "definition", "approve", "records/prices.yaml")
    other.ok("sync")
    assert "another one there" in ws.json("sync")["steps"][-1]["left_out"]
    ws.in_order()


def test_what_an_agent_keeps(two: Two) -> None:
    ws, other = two
    for name in ("one", "two"):
        ws.agent("keeper", f'state_set("{name}", 1)', "grants: [state.read, state.write, git.commit]\n")
        if name == "one":
            ws.ok("sync")
            other.ok("sync")
            other.run("keeper")
            other.ok("sync")
    ws.run("keeper")
    ws.ok("sync")
    assert ws.read("state/keeper.json") == '{\n "one": 1,\n "two": 1\n}\n'
    ws.in_order()


@pytest.fixture
def tasks(two: Two) -> tuple[Tasks, Tasks]:
    """Two clones with a ledger and one task."""
    ws, other = two
    mine = Tasks(ws)
    mine.planned(task(1))
    ws.ok("sync")
    other.ok("sync")
    theirs = object.__new__(Tasks)
    theirs.ws = other
    take_ok(other, "task", "plan")
    return mine, theirs


def test_tasks_of_both(tasks: tuple[Tasks, Tasks]) -> None:
    mine, theirs = tasks
    theirs.planned(task(2))
    theirs.finish("T-002")
    theirs.ws.ok("sync")
    mine.planned(task(3, requires=["T-001"]))
    mine.finish("T-001")
    assert [step["left_out"] for step in mine.ws.json("sync")["steps"] if step["left_out"]] == []
    theirs.ws.ok("sync")
    assert mine.ws.read(LEDGER) == theirs.ws.read(LEDGER)
    for each in tasks:
        assert each.states() == {"T-001": "completed", "T-002": "completed", "T-003": "pending"}
        take_ok(each.ws, "task", "plan")
        assert each("check").code == 0
        each.ws.in_order()


def test_a_task_of_one_id_is_a_card_and_what_requires_it(tasks: tuple[Tasks, Tasks]) -> None:
    mine, theirs = tasks
    theirs.planned(task(2, title="Theirs"))
    theirs.ws.ok("sync")
    mine.planned(task(2, title="Mine"))
    mine.planned(task(3, requires=["T-002"]))
    mine.planned(task(4))
    steps = mine.ws.json("sync")["steps"]
    assert [bool(step["left_out"]) for step in steps] == [True, True, False], steps
    assert mine.ws.json("task", "show", "T-002")["title"] == "Theirs"
    assert mine.states() == {"T-001": "pending", "T-002": "pending", "T-004": "pending"}
    assert mine.ws.json("task", "show", "T-002")["sealed"] != "yes"
    mine.ws.in_order()


def test_a_task_that_both_finished(tasks: tuple[Tasks, Tasks]) -> None:
    mine, theirs = tasks
    theirs.finish("T-001")
    theirs.ws.ok("sync")
    mine.finish("T-001", "otherwise\n")
    assert [bool(step["left_out"]) for step in mine.ws.json("sync")["steps"]] == [True]
    assert mine.ws.read("docs/T-001.txt") == "done\n" and mine.states() == {"T-001": "completed"}
    mine.ws.in_order()
