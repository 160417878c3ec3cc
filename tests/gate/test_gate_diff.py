"""``cleared agent diff``: what a change would have done on your own history, entry by entry."""

from __future__ import annotations

from harness import Workspace, chase

FEBRUARY = chase(("02/03/2025", "GITHUB *PRO", "-4.00"), ("02/06/2025", "AWS EMEA", "-31.00"))


def _edit(ws: Workspace, old: str, new: str) -> None:
    path = ws.root / "agents/ingest.py"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def _history(ws: Workspace) -> None:
    ws.drop("january.csv")
    ws.run("ingest")
    ws.drop("february.csv", FEBRUARY)
    ws.run("ingest")


def test_d14_a_changed_threshold_names_exactly_the_past_entries_that_differ(ws: Workspace) -> None:
    """D14: 0.97 lets GitHub (0.98) through and sends AWS (0.96) to review."""
    _history(ws)
    before = ws.state()
    assert ws.json("agent", "diff", "ingest")["entries"] == []
    _edit(ws, 'config_get("thresholds.auto_confirm")', "0.97")
    found = ws.json("agent", "diff", "ingest")
    assert (found["runs"], found["changed"], found["added"], found["removed"]) == (2, 2, 0, 0)
    assert [(e["entry_id"], e["before"]["status"], e["after"]["status"]) for e in found["entries"]] == [
        ("2025-01-003", "auto-confirmed", "pending-review"),
        ("2025-02-002", "auto-confirmed", "pending-review"),
    ]
    assert {e["entry_id"]: e["before"]["status"] for e in found["entries"]} == {
        e["entry_id"]: e["status"] for e in ws.json("journal", "list", "--text", "AWS")
    }
    shown = ws.ok("agent", "diff", "ingest").out
    assert "2025-01-003" in shown and "Over 2 past runs: 2 changed." in shown
    assert ws.state().changed_since(before) == {"agents/ingest.py"}
    assert found["warnings"] == ["the review queue would double: 2 cards before, 4 now"]


def test_half_as_many_cards_again_are_no_warning(ws: Workspace) -> None:
    ws.drop("january.csv")
    ws.run("ingest")
    _edit(ws, 'config_get("thresholds.auto_confirm")', "0.97")
    found = ws.json("agent", "diff", "ingest")
    assert (found["changed"], found["warnings"]) == (1, [])


def test_d3_confirming_everything_is_pointed_out(ws: Workspace) -> None:
    """D3: "confirms everything now" and "the queue would double", with counts."""
    _history(ws)
    _edit(ws, "if confidence >= threshold:", "if True:")
    found = ws.json("agent", "diff", "ingest")
    assert found["warnings"] == ["it confirms everything now: 6 entries, none left for review"]
    assert found["changed"] == 2
    ws.git("checkout", "-q", "agents")
    _edit(ws, "if confidence >= threshold:", "if False:")
    assert ws.json("agent", "diff", "ingest")["warnings"] == ["the review queue would double: 2 cards before, 6 now"]


def test_a_version_that_fails_over_the_past_is_named(ws: Workspace) -> None:
    _history(ws)
    _edit(ws, "            vendor = None", "            accounts_get(amount and 9999)")
    found = ws.json("agent", "diff", "ingest")
    assert len(found["failed"]) == 2 and "9999 does not exist" in found["failed"][0]
    assert found["removed"] == 6


def test_runs_whose_input_is_not_in_the_repository_are_counted(ws: Workspace) -> None:
    ws.config("import.keep=local")
    _history(ws)
    found = ws.json("agent", "diff", "ingest")
    assert found["runs"] == 0 and len(found["not_comparable"]) == 2


def test_without_an_approved_version_there_is_nothing_to_compare(ws: Workspace) -> None:
    ws.agent("fresh", "1\n", commit=False)
    done = ws("agent", "diff", "fresh")
    assert done.code == 2 and "no approved version" in done.err
