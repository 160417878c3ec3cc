"""Tables: rows are put and removed by runs, in one commit each, and are always as their schema says."""

from __future__ import annotations

import pytest
from harness import Workspace, fails, refused, take_ok
from tables import MAY, SCHEMA, define, put_prices


@pytest.fixture
def priced(ws: Workspace) -> Workspace:
    define(ws)
    return ws


def test_a_run_puts_reads_and_removes_rows(priced: Workspace) -> None:
    body = """
table_put("prices", {"sku": "B", "price": 2})
table_put("prices", {"sku": "A", "price": "4.2", "since": "2026-01-01"})
table_put("prices", {"sku": "C", "price": 9})
gone = table_remove("prices", "C")
again = table_remove("prices", "C")
found = [table_get("prices", "A"), table_get("prices", "Z")]
[table_rows("prices"), table_rows("prices", {"price": "4.20"}), *found, gone, again]
"""
    made = priced.script(body, header=MAY)
    first = {"sku": "A", "price": "4.20", "since": "2026-01-01"}
    second = {"sku": "B", "price": "2.00", "since": None}
    assert made["result"] == [[first, second], [first], first, None, True, False]
    assert [(row["row_id"], row["text"]) for row in made["rows"]] == [
        ("prices/A", "added: price 4.20, since 2026-01-01"),
        ("prices/B", "added: price 2.00"),
    ]
    assert priced.read("records/prices.csv") == "sku,price,since\nA,4.20,2026-01-01\nB,2.00,\n"
    assert len(made["commits"]) == 1
    assert "2 rows of prices change, 0 cards" in priced.read("logs/agent-log-2025-02.csv")
    priced.in_order()


def test_a_dry_run_says_what_would_change_and_changes_nothing(priced: Workspace) -> None:
    put_prices(priced, ("A", "4.20"), ("B", "1"))
    head = priced.head()
    body = 'table_put("prices", {"sku": "A", "price": "4.50"})\ntable_remove("prices", "B")'
    made = priced.script(body, "--dry-run", header=MAY)
    assert [(row["row_id"], row["text"]) for row in made["rows"]] == [
        ("prices/A", "changed: price 4.20 → 4.50"),
        ("prices/B", "removed"),
    ]
    assert priced.git("diff", "--stat", head, "--", "records") == ""


def test_what_does_not_change_a_row_makes_no_commit(priced: Workspace) -> None:
    put_prices(priced, ("A", "4.20"))
    body = 'table_put("prices", {"sku": "A", "price": 5})\ntable_put("prices", {"sku": "A", "price": "4.2"})'
    assert priced.script(body, header=MAY)["commits"] == []


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ('table_put("prices", {"sku": "A"})', "price is missing"),
        ('table_put("prices", {"sku": "", "price": 1})', "not optional"),
        ('table_put("prices", {"sku": "A", "price": -1})', "below 0"),
        ('table_put("prices", {"sku": "A", "price": 10001})', "above 10000"),
        ('table_put("prices", {"sku": "A", "price": "1.001"})', "more than 2 decimal places"),
        ('table_put("prices", {"sku": "A", "price": "NaN"})', "not a number"),
        ('table_put("prices", {"sku": "A", "price": True})', "not a number"),
        ('table_put("prices", {"sku": "A", "price": 1, "since": "2026-02-30"})', "not a day"),
        ('table_put("prices", {"sku": "A\\nB", "price": 1})', "cannot be seen"),
        ('table_put("prices", {"sku": "A\\u202e", "price": 1})', "cannot be seen"),
        ('table_put("prices", {"sku": 5, "price": 1})', "not a text"),
        ('table_put("prices", {"sku": "A", "price": 1, "colour": "red"})', "no column 'colour'"),
        ('table_put("prices", 5)', "not a dict"),
        ('table_get("prices", ["A", "B"])', "the key of prices is sku"),
        ('table_rows("costs")', "no table 'costs'"),
        ('table_rows("../config")', "no table"),
        ('table_rows("Prices")', "no table"),
        ('for n in range(6):\n    table_put("prices", {"sku": str(n), "price": 1})', "5 rows already"),
    ],
)
def test_what_does_not_fit_stops_the_run(priced: Workspace, call: str, said: str) -> None:
    fails(priced, call, said, header=MAY)
    assert not (priced.root / "records/prices.csv").read_text().splitlines()[1:]


def test_a_budget_of_the_header_holds(priced: Workspace) -> None:
    body = 'table_put("prices", {"sku": "A", "price": 1})\ntable_put("prices", {"sku": "B", "price": 1})'
    fails(priced, body, "2 rows is beyond the script's budget (max_rows: 1)", header=f"{MAY}max_rows: 1\n")
    fails(priced, 'table_rows("prices")', "(tables: costs)", header=f"{MAY}tables: [costs]\n", name="other")


def test_a_schema_counts_when_a_person_has_approved_it(ws: Workspace) -> None:
    ws.put("records/prices.yaml", SCHEMA)
    ws.commit("records/prices.yaml")
    fails(ws, 'table_rows("prices")', "nobody has approved records/prices.yaml", header=MAY)
    assert [v["check"] for v in ws("check", "--json").json["violations"]] == ["definition"]
    take_ok(ws, "definition", "approve", "records/prices.yaml")
    assert ws.run("probe")["result"] == []
    assert ws.json("definition", "list") == [{"path": "records/prices.yaml", "counts": True, "why": ""}]
    ws.in_order()


def test_a_schema_that_somebody_pushed_does_not_count(priced: Workspace) -> None:
    priced.put("records/prices.yaml", SCHEMA.replace("max: 10000", "max: 999999"))
    priced.commit("records/prices.yaml")
    fails(priced, 'table_rows("prices")', "is not as", "approved it", header=MAY)
    (found,) = priced("check", "--json").json["violations"]
    assert found["check"] == "definition" and "cleared definition approve" in found["remedy"]


def test_what_is_approved_is_what_was_shown(priced: Workspace) -> None:
    priced.put("records/prices.yaml", SCHEMA.replace("max_rows: 5", "max_rows: 6"))
    told = priced("definition", "approve", "records/prices.yaml")
    assert told.code == 3 and "It may have 6 rows instead of 5." in told.err
    digest = told.err.rsplit("--digest ", 1)[1].split(".")[0]
    priced.put("records/prices.yaml", SCHEMA.replace("max_rows: 5", "max_rows: 7"))
    refused(priced("definition", "approve", "records/prices.yaml", "--digest", digest), 3, "the digest is another")


def test_another_schema_takes_the_rows_along(priced: Workspace) -> None:
    put_prices(priced, ("A", "4.20"))
    define(priced, schema=SCHEMA.replace("  since:", "  unit: {type: text, optional: true}\n  since:"))
    assert priced.read("records/prices.csv") == "sku,price,unit,since\nA,4.20,,\n"
    priced.in_order()
    priced.put("records/prices.yaml", SCHEMA.replace("max: 10000", "max: 4"))
    refused(priced("definition", "approve", "records/prices.yaml"), 2, "4.2 is above 4")
    priced.git("checkout", "--", "records/prices.yaml")
    (priced.root / "records/prices.yaml").unlink()
    told = priced("definition", "approve", "records/prices.yaml")
    assert "The table prices is removed, with 1 row." in told.err
    take_ok(priced, "definition", "approve", "records/prices.yaml")
    assert not (priced.root / "records/prices.csv").exists()
    priced.in_order()


@pytest.mark.parametrize(
    ("rows", "check"),
    [
        ("A,4.20,\nA,4.30,\n", "key"),
        ("B,4.20,\nA,4.30,\n", "schema"),
        ("A,4.2,\n", "schema"),
        ("A,99999.00,\n", "schema"),
        ("A,4.20\n", "schema"),
        ('"A,4.20,\n', "schema"),
    ],
)
def test_rows_that_somebody_edits_are_named(priced: Workspace, rows: str, check: str) -> None:
    priced.put("records/prices.csv", f"sku,price,since\n{rows}")
    refused(priced("agent", "run", "ingest"), 4, "records/prices.csv")
    assert check in {v["check"] for v in priced("check", "--json").json["violations"]}
    priced.commit("records/prices.csv")
    found = {v["check"] for v in priced("check", "--json").json["violations"]}
    assert {check, "provenance"} <= found
    fails(priced, 'table_rows("prices")', "the table prices is damaged", header=MAY)


@pytest.mark.parametrize(
    "schema",
    [
        "",
        "key: sku\n",
        "key: sku\ncolumns: {}\n",
        "key: other\ncolumns: {sku: text}\n",
        "key: sku\ncolumns: {sku: {type: text, optional: true}}\n",
        "key: sku\ncolumns: {sku: money}\n",
        "key: sku\ncolumns: {sku: {type: text, min: 1}}\n",
        "key: sku\ncolumns: {Sku: text}\n",
        "key: sku\ncolumns: {sku: {type: integer, min: 5, max: 4}}\n",
        "key: sku\ncolumns: {sku: text, since: {type: date, min: 2026-02-01, max: 2026-01-31}}\n",
        "key: sku\ncolumns: {sku: text, sku: text}\n",
        "key: &a sku\ncolumns: {sku: *a}\n",
        "key: sku\ncolumns: {sku: text}\nmax_rows: 1000000\n",
        "key: sku\ncolumns: {sku: text}\nextra: 1\n",
        "key: [sku\n",
        "\x00",
    ],
)
def test_what_is_no_schema_is_refused_with_its_line(ws: Workspace, schema: str) -> None:
    ws.put("records/prices.yaml", schema)
    refused(ws("definition", "approve", "records/prices.yaml"), 4, "no schema of a table", "records/prices.yaml")
