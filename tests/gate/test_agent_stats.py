"""``cleared agent stats``: how agents do, from attested runs and what persons decided."""

from __future__ import annotations

from harness import Workspace, chase, refused
from tables import MAY, define


def test_stats_say_what_is_booked_without_asking_and_what_of_it_was_wrong(posted: Workspace) -> None:
    posted.ok("queue", "approve", "2025-01-002")
    posted.ok("queue", "correct", "2025-01-001", "--account", "5060")
    posted.drop("broken.csv", "no bank file at all\n")
    posted.drop("february.csv", chase(("02/03/2025", "AWS EMEA", "-45.10")))
    posted.run("ingest")
    found = posted.json("agent", "stats", "ingest")[0]
    assert (found["agent"], found["runs"], found["errors"], found["records"]) == ("ingest", 2, 0, 5)
    assert found["without_asking"] == "0.600" and found["asked"] == 2, "a card about a file asks about no entry"
    assert found["corrected"] == "0.333", "GitHub was booked as sure, and a person said otherwise"
    assert [(row["runs"], row["records"]) for row in found["trend"]] == [(2, 5)]
    rows = {row["from"]: (row["decided"], row["agreed"]) for row in found["calibration"]}
    assert rows["0.95"] == (1, 0) and rows["0"] == (1, 1)
    shown = posted.ok("agent", "stats", "ingest").out
    assert "33.3 %" in shown and "from 0.95" in shown
    assert [row["agent"] for row in posted.json("agent", "stats")] == ["ingest"], "only those that have run"
    refused(posted("agent", "stats", "nobody"), 2, "there is no agent 'nobody'")


def test_rows_of_tables_count_as_entries_do(ws: Workspace) -> None:
    define(ws)
    ask = 'table_put("prices", {"sku": "%s", "price": "%s"})\ntable_ask("prices", "%s", "Right?")'
    ws.agent(
        "putter",
        "\n".join(ask % each for each in (("a", "1", "a"), ("b", "2", "b"))),
        MAY.replace("git.commit", "git.commit, queue.write"),
    )
    ws.run("putter")
    right, wrong = (card["id"] for card in ws.cards())
    ws.ok("queue", "approve", right)
    ws.ok("queue", "reject", wrong, "--reason", "too dear")
    found = ws.json("agent", "stats", "putter")[0]
    assert (found["records"], found["asked"], found["without_asking"]) == (2, 2, "0.000")
    rows = {row["from"]: (row["decided"], row["agreed"]) for row in found["calibration"]}
    assert rows["0"] == (2, 1)


def test_an_agent_that_never_ran_has_no_share_of_anything(ws: Workspace) -> None:
    found = ws.json("agent", "stats", "monthly_summary")[0]
    assert found["runs"] == 0 and found["without_asking"] is None and found["milliseconds"] is None
    assert "No agent has run yet." in ws.ok("agent", "stats").out


def test_what_a_dry_run_would_have_made_is_no_record_of_its_agent(ws: Workspace) -> None:
    post = (
        'journal_add_double(date="2025-01-03", description="tea", debit_account=5020, credit_account=1010, amount="1", '
        'status="auto-confirmed", confidence=0.99, evidence="it is")\ngit_commit("post: tea")\n'
    )
    for name in ("tried", "made"):
        ws.agent(name, post)
    ws.ok("agent", "run", "tried", "--dry-run")
    ws.run("made")
    ws.ok("queue", "correct", "2025-01-001", "--account", "5060")
    assert ws.json("agent", "stats", "made")[0]["corrected"] == "1.000"
    found = ws.json("agent", "stats", "tried")[0]
    assert found["corrected"] is None and found["milliseconds"] is None and found["runs"] == 0
