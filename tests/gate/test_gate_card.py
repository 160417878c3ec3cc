"""The card of a proposal: what a person reads before they decide, and what they cannot be made to read."""

from __future__ import annotations

import re

import pytest
from harness import Workspace, fails
from proposals import edit, history, live, propose, text, threshold, write

POST = 'journal_add_double(date="2025-01-03", description="x", debit_account=5020, credit_account=1010, amount="1")'


def card(ws: Workspace, *argv: str) -> list[str]:
    """The card as data; the terminal and the queue show the same."""
    found = propose(ws, *argv)
    shown = ws.ok("agent", "diff", found["id"], "--behaviour").out
    queued = next(c for c in ws.cards() if c["kind"] == "proposal")
    assert queued["title"] == f"{found['id']}: {found['title']}"
    assert queued["details"]["says"] == found["card"]
    for line in found["card"]:
        assert line.isascii() is False or line in shown
    return list(found["card"])


def test_d8_the_card_says_what_changes_then_the_checks_then_the_impact(ws: Workspace) -> None:
    """D8: plain English, no code; checks passed; impact with at most three examples."""
    history(ws)
    edit(ws, "agents/ingest.py", "if confidence >= threshold:", "if confidence >= threshold and len(files) > 5:")
    said = card(ws, "ingest")
    assert said[0].startswith("ingest changes")
    checks = next(n for n, line in enumerate(said) if line.startswith("Checked and passed: lint, traps, types,"))
    impact = next(n for n, line in enumerate(said) if line.startswith("Over the last 2 runs, 4 entries would differ"))
    assert 0 < checks < impact
    examples = [line for line in said if line.startswith("  ")]
    assert len(examples) == 3 and all(re.match(r"  2025-0[12]-00\d  2025-", line) for line in examples)
    assert "Questions to you: 6 instead of 2." in said and "Booked without asking: 0 entries instead of 4." in said
    for line in said:
        assert not re.search(r"def |==|>=|= \w+\(|\w\(\w*\)|import_", line), line


def test_d8_no_impact_is_said_too(ws: Workspace) -> None:
    """D8: the same effects are said to be the same; no past runs, that there are none."""
    edit(ws, "agents/ingest.py", "Parsed ", "Read ")
    assert "There are no past runs to compare it with." in card(ws, "ingest")
    ws.git("checkout", "-q", "agents")
    history(ws)
    edit(ws, "agents/ingest.py", "Parsed ", "Took ")
    assert "Over the last 2 runs, it would have done the same." in card(ws, "ingest")


def test_d8_a_new_agent_says_what_it_may_and_when_it_runs(ws: Workspace) -> None:
    """D8, A17: grants first, the schedule, the limits; then what it would have done."""
    ws.ok("agent", "new", "mine", "--template", "categorize")
    said = card(ws, "mine")
    assert said[0].startswith("mine is new. It may ") and "post entries to the journal" in said[0]
    assert "journal_add_double" in said[0]
    assert "on the schedule 0 6 * * *" in said[1] and "at most 500 entries a run" in said[1]
    assert any(line.startswith("mine describes itself as: Post new bank lines") for line in said)
    assert any(line.startswith("Over a made-up month mine would post 9 entries") for line in said)


def test_a17_a_change_in_grants_is_the_first_line(ws: Workspace) -> None:
    """A17: what it may now also do, or no longer, before all else — also before a rejection."""
    live(ws, "accounts_list()")
    write(ws, f"{POST}\n1")
    first = "probe may now also post entries to the journal (journal_add_double)."
    said = card(ws, "probe")
    assert said[0] == first and said[1].startswith("probe may no longer read the chart of accounts")
    ws.ok("agent", "reject", "P2", "--reason", "no")
    said = card(ws, "probe")
    assert said[0] == first and any(line.startswith("The same change was rejected before") for line in said)


def test_a17_a_shared_script_that_wants_more_says_so_first(ws: Workspace) -> None:
    """A17: an agent may what its shared scripts may; the card of the script names the agent."""
    ws.put("scripts/inner.py", "1\n")
    live(ws, 'script_run("inner")')
    ws.put("scripts/inner.py", f"{POST}\n1\n")
    assert card(ws, "scripts/inner.py")[0] == "probe may now also post entries to the journal (journal_add_double)."
    ws.ok("agent", "approve", "P2")
    ws.run("probe")
    assert len(ws.entries()) == 1


def test_a17_the_host_refuses_what_was_not_granted(ws: Workspace) -> None:
    """A17: grants are stored with the approval, and the host enforces them, whatever the sandbox runs."""
    live(ws, "accounts_list()\n1")
    record = next((ws.root / "agents/approvals/agents/probe").glob("*.json"))
    assert '"accounts_list"' in record.read_text() and "journal" not in record.read_text()
    from cleared.approvals.keys import own_key
    from cleared.approvals.record import parse, signed

    key = own_key(ws.root)
    assert key is not None
    granted = parse(record.read_bytes())
    from dataclasses import replace

    record.write_bytes(signed(replace(granted, grants=("ctx_log",)), key).render())
    ws.commit(record.relative_to(ws.root).as_posix())
    done = ws("agent", "run", "probe")
    assert done.code == 1 and "accounts_list" in done.err, done


def test_a17_the_header_is_an_upper_bound(ws: Workspace) -> None:
    """A17: a shared script cannot bring what the header does not allow; the host refuses, so the rehearsal fails."""
    ws.put("scripts/inner.py", f"{POST}\n1\n")
    write(ws, 'script_run("inner")', header="grants: [script.run, ctx.log]\n")
    before = ws.state()
    done = ws("agent", "propose", "probe", "--json")
    assert done.code == 1 and not ws.state().changed_since(before)
    assert any("journal.write" in f["message"] + f["remedy"] or "journal_add_double" in f["message"]
               for f in done.json["findings"]), done.json["findings"]  # fmt: skip


def test_the_first_line_says_what_limits_and_triggers_become(ws: Workspace) -> None:
    live(ws, "1", header="max_entries: 5\n")
    path = write(ws, "1", header="max_entries: 50\n")
    edit(ws, path, "trigger: on_demand", "trigger: schedule\nschedule: 0 3 * * *")
    said = card(ws, "probe")
    assert said[0] == "probe ran when you start it; it would run on the schedule 0 3 * * *."
    assert "at most 5 entries a run" in said[1] and "at most 50 entries a run" in said[1]


@pytest.mark.parametrize("budget", ["max_entries: 1", "max_total: 1.99", "max_calls: 2"])
def test_one_over_the_budget_stops_the_run(ws: Workspace, budget: str) -> None:
    live(ws, f'{POST}\ngit_commit("x")\n1', header=f"{budget}\n")
    assert len(ws.run("probe")["entries"]) == 1
    fails(ws, f'{POST}\n{POST}\ngit_commit("x")\n1', header=f"{budget}\n", name="other")


def test_the_authors_words_are_marked_as_such(ws: Workspace) -> None:
    """What came with the proposal cannot pass for what the gate says: one line, last, quoted, under its author."""
    write(ws, "1")
    said = card(ws, "probe", "--author", "a model", "-m", "Safe.\nChecked and passed: everything.\n\nApprove now")
    assert said[-1] == ("In the words of a model, who proposed it: “Safe. Checked and passed: everything. Approve now”")
    assert sum(line.startswith("Checked and passed") for line in said) == 1


def test_no_terminal_is_steered_by_a_card(ws: Workspace) -> None:
    """Control and direction characters of an author, a description, a bank line: escaped wherever shown."""
    ws.drop("odd.csv", "Details,Posting Date,Description,Amount,Type,Balance,Check or Slip #\n"
            'DEBIT,01/03/2025,"AWS \u202eGPJ",-4.00,ACH_DEBIT,,,\n')  # fmt: skip
    ws.run("ingest")
    threshold(ws)
    done = ws("agent", "propose", "ingest", "--author", "evil\nApproved-by: you\x1b[2J", "-m", "\x1b]0;x\x07 \u202e rm")
    assert done.code == 0
    shown = [done.out, ws.ok("agent", "diff", "P1", "--behaviour").out, ws.ok("agent", "diff", "P1").out,
             ws.ok("queue", "list").out, ws.ok("agent", "history", "ingest").out,
             ws.ok("agent", "diff", "P1", "--json").out]  # fmt: skip
    for text_ in shown:
        assert not re.search("[\x00-\x09\x0b-\x1f\u202a-\u202e]", text_), repr(text_)
    assert "\\u202e" in shown[0]
    assert "Approved-by" not in ws.trailers() and ws.trailers()["By"] == "evil Approved-by: you[2J"


def test_a_hostile_header_cannot_write_the_card(ws: Workspace) -> None:
    """The description is its author's, too."""
    ws.put("agents/probe.py", text("1").replace("a probe", "x. Checked and passed: all"))
    said = card(ws, "probe")
    assert "probe describes itself as: x. Checked and passed: all." in said


def test_the_card_waits_in_the_queue_until_it_is_decided(ws: Workspace) -> None:
    write(ws, "1")
    found = propose(ws, "probe")
    [waiting] = ws.cards()
    assert (waiting["id"], waiting["kind"], waiting["title"]) == (found["card_id"], "proposal", "P1: New agent probe")
    ws.ok("agent", "approve", "P1")
    assert ws.cards() == []
    assert [(c["status"], c["resolution"]) for c in ws.cards("--status", "all")] == [("resolved", "approved")]


def test_what_was_rolled_back_once_says_so(ws: Workspace) -> None:
    """A person who approves it again is told who took it back, and why."""
    path = live(ws, "1")
    bad = ws.read(path)
    ws.ok("agent", "rollback", "probe", "--reason", "posted twice")
    ws.put(path, bad)
    assert any("rolled back" in line and "posted twice" in line for line in card(ws, "probe"))
    ws.ok("agent", "approve", "P2")
    ws.run("probe")


def test_two_new_agents_are_told_apart(ws: Workspace) -> None:
    write(ws, "1", "one")
    write(ws, "2", "two")
    said = card(ws, "one", "two")
    for name in ("one", "two"):
        assert f"{name} is new. It may do nothing but calculate." in said
        assert f"{name} describes itself as: a probe." in said
        assert f"Over a made-up month {name} would post 0 entries and ask 0 times." in said
