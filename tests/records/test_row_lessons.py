"""``cleared improve`` for agents that keep tables: what persons decided about rows becomes a rule of the script."""

from __future__ import annotations

import json
from typing import Any

import pytest
from harness import Workspace, refused, take_ok
from tables import define

SCHEMA = """key: [supplier, sku]
columns:
  supplier: text
  sku: text
  group: text
  price: {type: decimal, min: 0, max: 10000, places: 2}
"""
PATH = "agents/keeper.py"
HEADER = "grants: [table.read, table.write, queue.write, ctx.read, git.commit]\ntables: stock\n"
KEEPER = """
RULES = [
    ("supplier", "base", "group", "basics"),  # as agreed
]
delivered = ctx_event()["payload"]
for row in delivered["rows"] if delivered else []:
    group = ""
    for column, text, target, value in RULES:
        if target == "group" and group == "" and row[column] == text:
            group = value
    table_put("stock", {"supplier": row["supplier"], "sku": row["sku"], "group": group or "other", "price": "1"})
    if group == "":
        table_ask("stock", [row["supplier"], row["sku"]], "Which group is it?")
git_commit("stock: as delivered")
"""


@pytest.fixture
def shop(ws: Workspace) -> Workspace:
    define(ws, "stock", SCHEMA)
    ws.agent("keeper", KEEPER, header=HEADER)
    return ws


def deliver(ws: Workspace, supplier: str, *skus: str) -> None:
    rows = [{"supplier": supplier, "sku": sku} for sku in skus]
    ws.ok("agent", "run", "keeper", "--data", json.dumps({"rows": rows}))


def correct(ws: Workspace, group: str, *ids: str) -> None:
    for each in ids:
        ws.ok("queue", "correct", f"stock/{each}", "--set", f"group={group}")


def improve(ws: Workspace) -> dict[str, Any]:
    found = ws.json("improve")
    assert isinstance(found, dict)
    return found


def test_a_row_is_corrected_by_its_columns(shop: Workspace) -> None:
    deliver(shop, "acme", "bolt", "nut")
    done = shop.json("queue", "correct", "stock/acme/bolt", "--set", "group=hardware", "--set", "price=2.5")
    assert done["entries"] == ["stock/acme/bolt"] and "acme,bolt,hardware,2.50" in shop.read("records/stock.csv")
    assert [card["entry_id"] for card in shop.json("queue", "list")] == ["stock/acme/nut"]
    assert shop.json("why", "stock/acme/bolt")["row"]["values"]["group"] == "hardware"
    shop.in_order()
    shop.ok("queue", "undo")
    assert "acme,bolt,other,1.00" in shop.read("records/stock.csv") and len(shop.json("queue", "list")) == 2
    correct(shop, "hardware", "acme/bolt")
    correct(shop, "tools", "acme/bolt")  # nothing asks any more: a value that an agent put is changed
    assert "acme,bolt,tools,1.00" in shop.read("records/stock.csv")
    refused(shop("queue", "correct", "stock/acme/bolt", "--set", "group=tools"), 2, "is so already")
    refused(shop("queue", "correct", "stock/acme/bolt", "--set", "sku=nail"), 2, "no column that can be corrected")
    refused(shop("queue", "correct", "stock/acme/bolt", "--set", "price=dear"), 2, "does not fit")
    refused(shop("queue", "correct", "stock/acme/bolt", "--account", "5060"), 2, "--set COLUMN=VALUE")
    refused(shop("queue", "correct", "stock/acme/bolt", "--set", "group"), 2, "is not COLUMN=VALUE")
    refused(shop("queue", "correct", "stock/acme/bolt", "--set", "group=x", "--account", "5060"), 2, "without the")
    shop.in_order()


@pytest.mark.slow
def test_three_equal_decisions_become_one_card_and_one_rule(shop: Workspace) -> None:
    before = shop.read(PATH)
    deliver(shop, "acme", "bolt", "nut", "screw", "nail")
    deliver(shop, "zen", "tea")
    correct(shop, "hardware", "acme/bolt", "acme/nut")
    assert improve(shop)["proposed"] == [], "two are too few"
    correct(shop, "hardware", "acme/screw")
    done = improve(shop)
    says = "supplier acme → group hardware from now on, as you decided 3 of 3 times. "
    assert done["proposed"] == [
        {
            "file": PATH,
            "change": "supplier acme → group hardware from now on",
            "says": f"{says}4 rows of stock have that, 1 otherwise than they are.",
        }
    ]
    assert shop.read(PATH) == before and improve(shop)["proposals"] == done["proposals"]
    take_ok(shop, "agent", "approve", done["proposals"][0])
    rule = '    ("supplier", "acme", "group", "hardware"),\n'
    assert rule in shop.read(PATH) and shop.read(PATH).replace(rule, "") == before, "every other byte stays"
    assert improve(shop)["proposed"] == []
    deliver(shop, "acme", "washer")
    assert "acme,washer,hardware,1.00" in shop.read("records/stock.csv")
    assert not [card for card in shop.json("queue", "list") if card["entry_id"] == "stock/acme/washer"]
    shop.in_order()


@pytest.mark.slow
def test_a_correction_is_a_test_of_the_agent_that_put_the_row(shop: Workspace) -> None:
    """It warns at first; once a version passes it, one that does not is blocked."""
    deliver(shop, "acme", "bolt", "nut", "screw")
    done = shop.json("queue", "correct", "stock/acme/bolt", "--set", "group=hardware")
    assert done["case"].startswith("tests/cases/keeper-") and done["said"] == []
    said = shop("agent", "check", "keeper").out
    assert "row stock/acme/bolt: to be group hardware, but it is group other" in said
    correct(shop, "hardware", "acme/nut", "acme/screw")
    take_ok(shop, "agent", "approve", improve(shop)["proposals"][0])
    assert shop.ok("agent", "check", "keeper").out.count("✓") == 8
    shop.put(PATH, shop.read(PATH).replace('"acme", "group", "hardware"', '"acme", "group", "tools"'))
    assert "to be group hardware, but it is group tools" in shop("agent", "propose", "keeper").err
    shop.git("checkout", "-q", "--", PATH)
    shop.in_order()


@pytest.mark.slow
def test_what_was_confirmed_put_back_or_taken_back_counts_as_that(shop: Workspace) -> None:
    deliver(shop, "acme", "bolt", "nut", "screw", "nail")
    correct(shop, "hardware", "acme/bolt", "acme/nut", "acme/screw")
    shop.ok("queue", "undo")
    assert improve(shop)["proposed"] == [], "what was taken back is no decision"
    correct(shop, "hardware", "acme/screw")
    shop.ok("queue", "approve", "stock/acme/nail")
    assert improve(shop)["proposed"] == [], "it is not always so"
    (asked,) = improve(shop)["asked"] or [card["title"] for card in shop.cards() if card["kind"] == "contradiction"]
    assert asked == (
        "stock: where supplier is acme, group was hardware 3 times and other 1 time: is one of them always right?"
    )
    card = next(card for card in shop.cards() if card["kind"] == "contradiction")
    shop.ok("queue", "answer", card["id"], "most")
    assert improve(shop)["proposed"][0]["change"] == "supplier acme → group hardware from now on"
    shop.in_order()


@pytest.mark.slow
@pytest.mark.parametrize("is_last", [True, False])
def test_a_decision_that_git_took_back_teaches_nothing(shop: Workspace, is_last: bool) -> None:
    """Where it was the last commit, and where git left what attests it. An undo that git took back leaves the decision
    that it undid."""
    deliver(shop, "acme", "bolt", "nut", "screw")
    deliver(shop, "zen", "tea")
    correct(shop, "hardware", "acme/bolt", "acme/nut", "acme/screw")
    reverted = shop.head()
    if not is_last:
        shop.ok("queue", "approve", "stock/zen/tea")
    shop.git("revert", "--no-edit", reverted)
    shop.ok("accept", "HEAD", "--reason", "meant so")
    assert improve(shop)["proposed"] == [], "two are too few"
    correct(shop, "hardware", "acme/screw")
    shop.ok("queue", "undo")
    assert improve(shop)["proposed"] == []
    shop.git("revert", "--no-edit", "HEAD")
    shop.ok("accept", "HEAD", "--reason", "meant so")
    assert [each["change"] for each in improve(shop)["proposed"]] == ["supplier acme → group hardware from now on"]
    shop.in_order()


def test_rows_that_another_agent_made_teach_it_nothing_and_commits_by_hand_nobody(shop: Workspace) -> None:
    shop.agent("other", KEEPER.replace("RULES = [", "KNOWN = [").replace("in RULES", "in KNOWN"), header=HEADER)
    rows = [{"supplier": "acme", "sku": sku} for sku in ("bolt", "nut", "screw")]
    shop.ok("agent", "run", "other", "--data", json.dumps({"rows": rows}))
    correct(shop, "hardware", "acme/bolt", "acme/nut")
    shop.put("records/stock.csv", shop.read("records/stock.csv").replace("screw,other", "screw,hardware"))
    shop.git("add", "records/stock.csv")
    forged = "correct: x\n\nDecision: 20250210T060000Z-aaaaaa\nBy: root\nCards: stock/acme/screw"
    shop.git("commit", "-qm", forged)
    assert improve(shop)["proposed"] == [] == improve(shop)["unwritten"]
    shop.git("reset", "-q", "--hard", "HEAD~1")
    correct(shop, "hardware", "acme/screw")
    done = improve(shop)
    assert done["proposed"] == [] and done["unwritten"][0]["file"] == "agents/other.py", "a model may write it"


def test_rules_that_never_count_are_proposed_to_go(shop: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    before = shop.read(PATH)
    shop.put(PATH, before.replace("]\ndelivered", '    ("supplier", "base", "group", "older"),\n]\ndelivered'))
    shop.commit(PATH, *shop.approve(PATH))
    deliver(shop, "acme", "bolt")
    done = improve(shop)
    assert [each["says"] for each in done["proposed"]] == [
        "No rule any more: supplier base → group older. A rule before it is about the same rows."
    ]
    take_ok(shop, "agent", "approve", done["proposals"][0])
    assert shop.read(PATH) == before
    monkeypatch.setenv("CLEARED_CLOCK", "2026-06-10T06:00:00Z")
    assert [each["says"] for each in improve(shop)["proposed"]] == [
        "No rule any more: supplier base → group basics. No row has supplier base."
    ]


def test_any_text_can_be_that_of_a_rule_and_none_is_more_than_a_text(shop: Workspace) -> None:
    """Whoever sends a list chooses the words in it."""
    name = 'Ev"il\\ & Söhne"), ("sku'
    deliver(shop, name, "bolt", "nut", "screw")
    correct(shop, "hardware", f"{name}/bolt", f"{name}/nut")
    shop.ok("queue", "approve", f"stock/{name}/screw")
    assert improve(shop)["proposed"] == [], "a confirmed row counts, too"
    shop.ok("queue", "undo")
    correct(shop, "hardware", f"{name}/screw")
    take_ok(shop, "agent", "approve", improve(shop)["proposals"][0])
    assert '    ("supplier", "Ev\\"il\\\\ & Söhne\\"), (\\"sku", "group", "hardware"),\n' in shop.read(PATH)
    deliver(shop, name, "nail")
    assert "nail,hardware" in shop.read("records/stock.csv")
    shop.in_order()
