"""What the past answers about an agent that keeps a table: shadow, replay, revert, bisect, what is watched. N2, N8–N10,
D11: the same as of one that keeps books."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

import pytest
from harness import CLOCK, Workspace, here, take_ok
from tables import SCHEMA, define

MAY = "grants: [table.read, table.write, queue.write, ctx.read, money.read, git.commit]\ntables: prices\n"
PUT = """
given = ctx_event()["payload"] or {{"sku": "A", "price": "1"}}
table_put("prices", {{"sku": given["sku"], "price": {price}}})
{more}
git_commit("prices: as given")
"""
GIVEN = 'given["price"]'
DEAR = 'given["price"] if decimal(given["price"]) < 5 else "9"'
ASKS = 'if ctx_now() > "2025-02-11":\n    table_ask("prices", given["sku"], "Is it right?")'


def keep(ws: Workspace, price: str = GIVEN, more: str = "") -> None:
    """A version of the agent, proposed and approved."""
    head = f'"""\nname: Keeper\ndescription: Keep prices\ntrigger: on_demand\n{MAY}"""\n'
    ws.put("agents/keeper.py", head + PUT.format(price=price, more=more))
    take_ok(ws, "agent", "approve", ws.json("agent", "propose", "keeper")["id"])


def give(ws: Workspace, sku: str, price: str) -> str:
    done = ws.json("agent", "run", "keeper", "--data", json.dumps({"sku": sku, "price": price}))
    return str(done["run_id"])


@pytest.fixture
def shop(ws: Workspace) -> Workspace:
    define(ws, schema=SCHEMA.replace("max_rows: 5", "max_rows: 50"))
    keep(ws)
    return ws


def test_n8_a_shadow_compares_rows(shop: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    give(shop, "A", "1")
    monkeypatch.setenv("CLEARED_CLOCK", "2025-02-10T09:00:00Z")
    shop.put("agents/keeper.py", shop.read("agents/keeper.py").replace(GIVEN + "})", DEAR + "})"))
    proposed = shop.json("agent", "propose", "keeper")["id"]
    shop.ok("agent", "shadow", "start", proposed)
    give(shop, "A", "2")
    odd = give(shop, "B", "7")
    (found,) = shop.json("agent", "shadow", "status")
    assert (found["compared"], found["same"]) == (2, 1) and found["differing"][0]["run"] == odd
    assert found["differing"][0]["what"] == [
        "prices/B added: price 9.00: otherwise in prices: added: price 7.00 → added: price 9.00"
    ]
    assert "B,7.00" in shop.read("records/prices.csv"), "nothing of it is kept"
    assert shop.json("check")["ok"]


def test_n2_a_run_is_done_again_also_of_a_script_long_replaced(shop: Workspace) -> None:
    first = give(shop, "A", "1")
    keep(shop, DEAR)
    second = give(shop, "A", "7")
    for run in (first, second):
        replay = shop.json("replay", run)
        assert replay["same"] is True and replay["effects"] == ["records/prices.csv"] and replay["missing"] == []


READS = """
if given["sku"] == "C":
    seen = table_get("prices", "A")
    table_put("prices", {"sku": "T", "price": seen["price"] if seen else "0"})
if given["sku"] == "D":
    table_rows("prices", {"sku": "B"})
if given["sku"] == "E":
    table_put("prices", {"sku": "N", "price": len(table_rows("prices"))})
"""


def test_n9_what_read_a_row_goes_with_it(shop: Workspace) -> None:
    """By its key, or all rows of the table; not what read another row, or put one in its place."""
    give(shop, "A", "1")
    give(shop, "B", "2")
    keep(shop, more=READS)
    bad = give(shop, "A", "6")
    give(shop, "B", "3")
    by_key, other, all_rows = give(shop, "C", "4"), give(shop, "D", "5"), give(shop, "E", "7")
    done = shop.json("revert", bad, "--yes")
    assert [each["run"] for each in done["runs"]] == [all_rows, by_key, bad] and done["may_have_read"] == [], other
    assert "table_get at agents/keeper.py:" in done["runs"][1]["why"]
    assert shop.read("records/prices.csv").splitlines()[1:] == ["A,1.00,", "B,3.00,", "D,5.00,"]
    shop.in_order()


def test_n10_bisect_finds_the_run_that_put_a_value(shop: Workspace) -> None:
    runs = [give(shop, "A", str(price)) for price in (1, 2, 3, 9, 4, 5)]
    asked = ("bisect", "--good", runs[0], "--json", "-C", str(shop.root), "--")
    found = here(*asked, "sh", "-c", "! git log -p --format= -- records/prices.csv | grep -q '^+A,9.00'").json
    assert found["run"] == runs[3]


def test_d11_a_version_that_doubles_the_cards_is_taken_back(shop: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    at = datetime.fromisoformat(CLOCK)

    def later(**more: float) -> None:
        nonlocal at
        at += timedelta(**more)
        monkeypatch.setenv("CLEARED_CLOCK", at.strftime("%Y-%m-%dT%H:%M:%SZ"))

    shop.config("self_improvement.cooldown_hours=0")
    for number in range(40):
        later(minutes=1)
        give(shop, f"{number % 4}", f"{number}")
    good = shop.read("agents/keeper.py")
    later(minutes=1)
    keep(shop, more=ASKS)
    later(days=1)
    for number in range(41, 81):
        later(minutes=1)
        done = shop("agent", "run", "keeper", "--data", json.dumps({"sku": f"{number % 4}", "price": f"{number}"}))
        if "was taken back" in done.err:
            break
    assert shop.read("agents/keeper.py") == good and number < 60
    card = next(c for c in shop.cards() if c["kind"] == "taken_back")
    assert "cards for" in str(card["details"]["why"])
    shop.in_order()
