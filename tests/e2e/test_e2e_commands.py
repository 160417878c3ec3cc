"""The command line as programs use it: --json, exit codes, one paragraph per refusal."""

from __future__ import annotations

import json

import pytest
from harness import Workspace, here, no_traceback, refused, unchanged

LISTING = {
    "agent list": list,
    "agent show ingest": dict,
    "run list": list,
    "journal list": list,
    "check": dict,
    "journal balance": list,
    "journal balance 1010": list,
    "journal balance --month 2025-01": list,
    "journal balance --as-of 2025-01-05": list,
    "accounts list": list,
    "queue list": list,
    "queue list --status all": list,
    "period list": list,
    "primitives": list,
}


@pytest.mark.parametrize("command", LISTING)
def test_json_is_one_value_and_nothing_else(posted: Workspace, command: str) -> None:
    """--json on every listing command: one JSON value on stdout, nothing on stderr, ASCII only, nothing changed."""
    with unchanged(posted):
        done = (here if command == "primitives" else posted)(*command.split(), "--json")
    assert done.code == 0 and done.err == "", done
    assert isinstance(json.loads(done.out), LISTING[command]) and done.out.isascii() and done.out.count("\n") == 1
    plain = (here if command == "primitives" else posted)(*command.split())
    assert plain.code == 0 and plain.out.strip() and plain.out != done.out


def test_json_where_there_is_nothing(ws: Workspace) -> None:
    """--json: empty lists are lists; without it a sentence says so."""
    for command in ("run list", "journal list", "queue list", "period list", "journal balance"):
        assert ws.json(*command.split()) == []
        assert ws.ok(*command.split()).out.strip()


def test_cards_have_the_documented_keys(posted: Workspace) -> None:
    """queue list: {id, kind, entry_id, title, status, created_at, run_id, …}."""
    for card in posted.cards():
        assert {"id", "kind", "entry_id", "title", "status", "created_at", "run_id"} <= set(card)
        assert (
            card["status"] == "open"
            and card["kind"] == "entry"
            and card["entry_id"] in card["title"] + card["entry_id"]
        )


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        ("agent run nothing", 2),
        ("agent show nothing", 2),
        ("run show nothing", 2),
        ("journal list --month 2025-13", 2),
        ("journal balance 9999", 2),
        ("journal balance --as-of 2025-02-30", 2),
        ("journal void 2025-01-099 --reason x", 1),
        ("journal void nonsense --reason x", 1),
        ("period close 2025-02", 3),
        ("period reopen 2025-01 --reason x", 3),
        ("import /nowhere/x.csv", 4),
    ],
)
def test_refusals_as_json(posted: Workspace, argv: str, code: int) -> None:
    """Exit codes, and with --json one object {"error": {type, message, place, remedy, exit_code}} on stdout."""
    with unchanged(posted):
        refused(posted(*argv.split()), code)
        done = posted(*argv.split(), "--json")
    assert done.code == code
    error = json.loads(done.out)["error"]
    assert error["exit_code"] == code and error["message"] and done.out.count("\n") == 1
    no_traceback(done)


@pytest.mark.parametrize(
    "argv",
    [
        "agent",
        "agent run",
        "agent run a b",
        "agent run --dry",
        "run show",
        "journal void 2025-01-001",
        "journal balance x",
        "period close",
        "queue list --status closed",
        "run list --limit 0",
        "run list --limit x",
        "init",
        "nonsense",
        "journal list --account cash",
        "--nonsense",
        "rpc",
        "rpc --stdio --socket x",
    ],
)
def test_usage(posted: Workspace, argv: str) -> None:
    """Exit 2 for a command that was called wrongly; nothing changed, no traceback."""
    with unchanged(posted):
        done = here("-C", str(posted.root), *argv.split())
    assert done.code in ({0, 2} if argv == "agent" else {2}), done
    no_traceback(done)


def test_closed_periods_on_the_command_line(posted: Workspace) -> None:
    """period close, list and reopen, as a person sees them."""
    posted.script(
        'for e in journal_query(status="pending-review"):\n    journal_update_status(e["entry_id"], "auto-confirmed")'
    )
    assert (
        "closed through 2025-01-31"
        in posted.ok("period", "close", "2025-01-31", "--filed", "--with-pending", "--reason", "sent").out
    )
    [mark] = posted.json("period", "list")
    assert mark["state"] == "filed" and mark["through"] == "2025-01-31" and mark["digest"]
    assert mark["reason"] == "sent; with 2 decisions pending"
    assert "filed" in posted.ok("period", "list").out
    assert posted.git("log", "-1", "--format=%s").strip() == "close: through 2025-01-31, with 2 pending"
    assert "Decision" in posted.trailers()
    posted.in_order()


def test_balances(posted: Workspace) -> None:
    """journal balance: the trial balance sums to zero; one account; up to a day; of a month."""
    rows = {r["account_id"]: r["balance"] for r in posted.json("journal", "balance")}
    assert rows == {1010: "1446.40", 4010: "-1500.00", 5020: "49.10", 5030: "4.50"}
    assert posted.json("journal", "balance", "--as-of", "2025-01-05")[0]["balance"] == "-4.00"
    assert [r["balance"] for r in posted.json("journal", "balance", "--month", "2024-12")] == ["0.00"] * 4
    [one] = posted.json("journal", "balance", "5020")
    assert one["account_name"] and one["balance"] == "49.10"
    assert "0.00" in posted.ok("journal", "balance").out.splitlines()[-1]
