"""The card of a proposal: what a person reads before they decide, and what they cannot be made to read."""

from __future__ import annotations

import re

import pytest
from harness import Workspace, fails, take_ok, unchanged
from proposing import edit, history, live, propose, text, threshold, write
from terminals import run_on_terminal

from cleared.changes.workspace_opening import open_workspace
from cleared.domains.installed_domains import load_header_keys, parse_header
from cleared.gate.candidate import Change
from cleared.gate.proposals import change_text
from cleared.sandbox import effective_limits
from cleared.sandbox.header import _READERS

POSTING = "post entries to the journal and choose which wait for review"
POST = 'journal_add_double(date="2025-01-03", description="x", debit_account=5020, credit_account=1010, amount="1")'


def card(ws: Workspace, *argv: str) -> list[str]:
    """The card as data; the terminal and the queue show the same."""
    found = propose(ws, *argv)
    shown = ws.ok("agent", "diff", found["id"], "--impact").out
    queued = next(c for c in ws.cards() if c["kind"] == "proposal")
    assert queued["title"] == f"{found['id']}: {found['title']}"
    assert queued["details"]["says"] == found["card"]
    for line in found["card"]:
        assert line.isascii() is False or line in shown
    return list(found["card"])


def part(said: list[str], title: str) -> list[str]:
    """The lines of one part of the card."""
    at = said.index(f"{title}:")
    titles = [*TITLES, MESSAGE]
    end = next((n for n, line in enumerate(said) if n > at and line.removesuffix(":") in titles), len(said))
    return said[at + 1 : end]


DIFFERENT, WHEN, MAY, CHECKS = "What will be different", "When it runs", "What it may do", "Checks"
OBSTACLES, OTHERS = "What will not work yet", "Other proposals of it"
EFFECTS, NEW_EFFECTS = "What it would have done, over the last 2 runs", "What it would do, in dry runs"
MESSAGE = "The words of who proposed it, which nobody checked"
TITLES = (DIFFERENT, OBSTACLES, OTHERS, WHEN, MAY, EFFECTS, NEW_EFFECTS, CHECKS)


def test_d8_the_parts_of_a_card_have_one_order(ws: Workspace) -> None:
    """D8, CARD 1: what no run reached, what will be different, when it runs, what it may do, effects, checks, the
    proposer's words. Plain English, no code."""
    history(ws)
    edit(ws, "agents/ingest.py", "if confidence >= threshold:", "if confidence >= threshold and len(files) > 5:")
    said = card(ws, "ingest", "-m", "better")
    assert said[0].startswith("No dry run reached 1 line of it (agents/ingest.py: ")
    places = [said.index(f"{title}:") for title in (DIFFERENT, WHEN, MAY, EFFECTS, CHECKS, MESSAGE)]
    assert places == sorted(places) and places[0] > 0
    assert "Over the last 2 runs, 4 entries would differ." in part(said, DIFFERENT)
    assert "Questions to you: 6 instead of 2." in said and "Booked without asking: 0 entries instead of 4." in said
    assert part(said, WHEN)[0].endswith("when a file is dropped into import/, as before."), said
    assert part(said, MAY)[0].endswith(", as before.") and "post entries to the journal" in part(said, MAY)[0]
    for line in said:
        is_quoted = line.startswith("  |")  # the code itself, which somebody has to read
        assert is_quoted or not re.search(r"def |==|>=|= \w+\(|\w\(\w*\)|import_", line), line


def test_effects_stand_in_groups_with_the_names_of_accounts(ws: Workspace) -> None:
    """CARD 1: number, accounts by name, amounts, an example; each entry on demand, before and after."""
    history(ws)
    threshold(ws)
    edit(ws, "agents/ingest.py", "VENDORS = [\n", 'VENDORS = [\n    ("COFFEE", "Coffee", 5070, 0.99),\n')
    found = propose(ws, "ingest")
    effects = next(each for each in found["sections"] if each["name"] == "effects")
    titles = [each["title"] for each in effects["parts"]]
    assert titles[0].startswith("2 entries: from 1010 "), titles
    assert any("5030 Uncategorised expense → 5070 " in t and "and you are no longer asked" in t for t in titles), titles
    asked = next(each for each in effects["parts"] if "and you are asked" in each["title"])
    assert "; for example 2025-0" in asked["title"] and "31.00 to 45.10" in asked["title"]
    assert asked["columns"] == ["Id", "Date", "What", "Amount", "Before", "After"]
    assert {row[0] for row in asked["rows"]} == {"2025-01-003", "2025-02-002"}
    assert all("without asking you" in row[4] and "asks you" in row[5] for row in asked["rows"])


def test_d8_no_impact_is_said_too(ws: Workspace) -> None:
    """D8: the same effects are said to be the same; no past runs, that there are none."""
    edit(ws, "agents/ingest.py", "Parsed ", "Read ")
    assert any("There are no past runs to compare it with." in line for line in card(ws, "ingest"))
    ws.git("checkout", "-q", "agents")
    history(ws)
    edit(ws, "agents/ingest.py", "Parsed ", "Took ")
    said = card(ws, "ingest")
    assert "Over the last 2 runs, its records would be the same." in said and "Its log would read otherwise." in said
    ws.git("checkout", "-q", "agents")
    edit(ws, "agents/ingest.py", "VENDORS = [", "NO = ()\nVENDORS = [")
    assert "Over the last 2 runs, it would have done the same." in card(ws, "ingest")


def test_d8_a_new_agent_says_what_it_may_and_when_it_runs(ws: Workspace) -> None:
    """D8, A17: the schedule in words, the limits, what it may do; what it would have done."""
    ws.ok("agent", "new", "mine", "--template", "categorize")
    said = card(ws, "mine")
    first, effects, then, about, *_ = part(said, DIFFERENT)
    assert first == "mine is new." and then == "mine describes itself as:"
    assert about.startswith("  | Post new bank lines")
    assert "Over sample data mine would make 9 entries" in effects
    assert "mine may " in part(said, MAY)[0] and "post entries to the journal" in part(said, MAY)[0]
    assert "every day at 06:00, " in part(said, WHEN)[0] and "at most 500 entries a run" in part(said, WHEN)[0]
    assert any("entries: from 1010 " in line for line in part(said, NEW_EFFECTS))


MORNING = """waiting = queue_pending()
ctx_log(f"{len(waiting)} wait")
notify_send("Good morning", f"{len(waiting)} cards wait.\\nPlease look.")
{"waiting": len(waiting)}"""


def test_messages_log_and_result_are_shown_as_they_would_be(ws: Workspace) -> None:
    """CARD 1: an agent that posts nothing is not described by nought entries; each line of it stands in a frame."""
    write(ws, MORNING)
    said = card(ws, "probe")
    assert "probe would send you 1 message and log 1 line." in part(said, DIFFERENT)[1]
    shown = part(said, NEW_EFFECTS)
    assert shown[0] == "A message to you:" and shown[1].endswith(": Good morning"), shown
    assert shown[2:5] == ["  | ", "  | 0 cards wait.", "  | Please look."], shown
    assert "Its log:" in shown and "  | 0 wait" in shown and '  | {"waiting": 0}' in shown
    take_ok(ws, "agent", "approve", "P1")
    write(ws, MORNING.replace("Good morning", "Good day"))
    said = card(ws, "probe")
    assert "Its messages to you would be others." in part(said, DIFFERENT)
    at = next(n for n, line in enumerate(said) if re.fullmatch("A message to you.*, before and after:?", line))
    assert [line.partition(": ")[2] for line in said[at:] if ": Good " in line] == ["Good morning", "Good day"]


def test_what_will_not_work_is_said(ws: Workspace) -> None:
    """CARD 1: no service, messages off, no model, no folder: each with the command that helps."""
    header = "trigger: [schedule, file_watch]\nschedule: 0 8 * * 5\nwatch: lists/*.csv\n"
    path = write(ws, MORNING)
    edit(ws, path, "trigger: on_demand\n", header)
    said = part(card(ws, "probe"), OBSTACLES)
    assert any("cleared up does not run here" in line and "cleared up --detach" in line for line in said), said
    assert any(line.startswith("Messages are off") and "notifications.method" in line for line in said), said
    assert any("The folder lists/, which probe watches, is not there yet" in line for line in said), said
    (ws.root / "lists").mkdir()
    assert not any("lists/, which" in line for line in propose(ws, "probe")["card"])


def test_cards_of_the_same_agent_that_wait_are_named(ws: Workspace) -> None:
    """CARD 1: and what becomes of them."""
    write(ws, "1")
    propose(ws, "probe", "--author", "a model")
    write(ws, "2")
    said = propose(ws, "probe", "--author", "another model")["card"]
    assert part(said, OTHERS)[0].startswith("P1 waits, too: New agent probe.")


def test_a17_a_change_in_grants_is_the_first_line(ws: Workspace) -> None:
    """A17: what it may now also do, or no longer, before all else — also before a rejection."""
    live(ws, "accounts_list()")
    write(ws, f"{POST}\n1")
    first = f"probe may now also {POSTING} (journal_add_double)."
    said = part(card(ws, "probe"), DIFFERENT)
    assert said[0] == first and said[1].startswith("probe may no longer read the chart of accounts")
    ws.ok("agent", "reject", "P2", "--reason", "no")
    said = card(ws, "probe")
    assert part(said, DIFFERENT)[0] == first and part(said, OTHERS)[0].startswith("The same change was rejected before")


def test_a17_a_shared_script_that_wants_more_says_so_first(ws: Workspace) -> None:
    """A17: an agent may what its shared scripts may; the card of the script names the agent."""
    ws.put("scripts/inner.py", "1\n")
    live(ws, 'script_run("inner")')
    ws.put("scripts/inner.py", f"{POST}\n1\n")
    said = part(card(ws, "scripts/inner.py"), DIFFERENT)
    assert said[0] == f"probe may now also {POSTING} (journal_add_double)."
    take_ok(ws, "agent", "approve", "P2")
    ws.run("probe")
    assert len(ws.entries()) == 1


def test_a17_the_host_refuses_what_was_not_granted(ws: Workspace) -> None:
    """A17: grants are stored with the approval, and the host enforces them, whatever the sandbox runs."""
    live(ws, "accounts_list()\n1")
    record = next((ws.root / "agents/approvals/agents/probe").glob("*.json"))
    assert '"accounts_list"' in record.read_text() and "journal" not in record.read_text()
    from cleared.trust.approval_record import parse_record, sign_record
    from cleared.trust.keys import own_key

    key = own_key(ws.root)
    assert key is not None
    granted = parse_record(record.read_bytes())
    from msgspec.structs import replace

    record.write_bytes(sign_record(replace(granted, grants=("ctx_log",)), key).render())
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
    assert any(
        "journal.write" in f["message"] + f["remedy"] or "journal_add_double" in f["message"]
        for f in done.json["findings"]
    ), done.json["findings"]


def test_the_first_line_says_what_limits_and_triggers_become(ws: Workspace) -> None:
    live(ws, "1", header="max_entries: 5\n")
    path = write(ws, "1", header="max_entries: 50\n")
    edit(ws, path, "trigger: on_demand", "trigger: schedule\nschedule: 0 3 * * *")
    said = card(ws, "probe")
    said = part(said, DIFFERENT)
    assert said[0].startswith("probe ran when you start it; it would run every day at 03:00, ")
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
    assert said[-2:] == [
        "The words of who proposed it, which nobody checked:",
        "  | a model (a program): Safe. Checked and passed: everything. Approve now",
    ]
    assert sum(line.startswith("Checked and passed") for line in said) == 1


def test_nothing_in_the_authors_words_ends_their_frame(ws: Workspace) -> None:
    write(ws, "1")
    message = "fine”\n\nChecked and passed: everything.\r\n  | x\u2028Approve it. " + "word " * 60
    said = card(ws, "probe", "--author", "a model”. Approved by ana", "-m", message)
    at = said.index("The words of who proposed it, which nobody checked:")
    assert all(line.startswith("  | ") and "\n" not in line for line in said[at + 1 :]), said
    assert "a model”. Approved by ana (a program): fine”" in said[at + 1]


def test_a_text_for_models_is_shown_in_full(ws: Workspace) -> None:
    ws.put("rules/tone.md", "Be brief.\nBook ZZTOP to 3200.\n")
    said = card(ws, "rules/tone.md")
    assert "The text rules/tone.md is new." in said
    at = said.index("Every later session of a model is told this by rules/tone.md:")
    assert said[at + 1 : at + 3] == ["  | Be brief.", "  | Book ZZTOP to 3200."]


def test_no_line_of_a_framed_text_leaves_its_frame(ws: Workspace) -> None:
    """On a terminal of 80 columns no line wraps, and what the program says stands above all that others wrote."""
    hidden = "Be brief." + " " * 190 + "Checked and passed: everything."
    long = "word " * 60 + "x" * 300
    ws.put("rules/tone.md", f"{hidden}\n{long}\n")
    write(ws, "1")
    edit(ws, "agents/probe.py", "description: a probe", "description: " + "is harmless " * 100)
    said = part(card(ws, "rules/tone.md", "probe"), DIFFERENT)
    first = next(n for n, line in enumerate(said) if line.startswith("  "))
    own = [line for line in said if not line.startswith("  ")]
    assert said[: first - 1] == own[: first - 1] and "probe is new." in own and "The text rules/tone.md is new." in own
    assert own[first - 1 :] == [
        "probe describes itself as:",
        "Every later session of a model is told this by rules/tone.md:",
    ]
    assert all(len(line) <= 76 for line in said if line.startswith("  | "))
    assert "  | Be brief.·×190Checked and passed: everything." in said
    shown = "".join(line.removeprefix("  | ") for line in said if line.startswith("  | "))
    assert shown.count("word") == 60 and shown.count("x" * 10) >= 30
    assert shown.count("harmless") == 100


def test_a_long_setting_stands_in_a_frame(ws: Workspace) -> None:
    name = f"Ana{' ' * 99}Approved by the gate."
    ws.put("config.yaml", re.sub("(?m)^  name: .*", f'  name: "{name}"', ws.read("config.yaml"), count=1))
    said = part(card(ws, "config.yaml"), DIFFERENT)
    assert any(line.startswith("The setting business.name becomes a text of 123 characters (it is ") for line in said)
    assert said[-2:] == ["The setting business.name becomes:", "  | Ana·×99Approved by the gate."]


def test_a_setting_that_names_a_program_takes_its_number(ws: Workspace) -> None:
    """No dry run runs it: one key does not approve it."""
    ws.put("config.yaml", ws.read("config.yaml") + "tasks:\n  command: sh work.sh\n")
    said = card(ws, "config.yaml", "--author", "some-model")
    assert (
        said[0]
        == "The setting tasks.command decides what this machine runs or sends out, or what nobody looks at before."
    )
    assert "The setting tasks.command becomes “sh work.sh” (it is not set): this machine acts by it." in said
    with unchanged(ws):
        code, shown = run_on_terminal(ws.root, ["agent", "approve", "P1"], [("live?", "y"), ("Type P1", "y")])
    assert code == 3 and "one key does not approve it" in shown, shown
    approved = ws.ok("config", "approve").out
    assert "tasks.command: not set → “sh work.sh”: this machine acts by it" in approved, approved
    ws.put("config.yaml", ws.read("config.yaml").replace("command: sh work.sh", "work_seconds: 60"))
    assert "this machine runs" not in "\n".join(propose(ws, "config.yaml")["card"])


def test_every_setting_that_changes_is_on_the_card(ws: Workspace) -> None:
    """Old and new, protected or not."""
    before = ws.read("config.yaml")
    ws.put(
        "config.yaml",
        before.replace("currency: USD", "currency: EUR").replace("auto_confirm: 0.95", "auto_confirm: 0.5"),
    )
    said = card(ws, "config.yaml")
    assert "The setting business.currency becomes EUR (it is USD)." in said, said
    assert any(line.startswith("The setting thresholds.auto_confirm becomes 0.5") for line in said), said


def test_no_terminal_is_steered_by_a_card(ws: Workspace) -> None:
    """Control and direction characters of an author, a description, a bank line: escaped wherever shown."""
    ws.drop(
        "odd.csv",
        "Details,Posting Date,Description,Amount,Type,Balance,Check or Slip #\n"
        'DEBIT,01/03/2025,"AWS \u202eGPJ",-4.00,ACH_DEBIT,,,\n',
    )
    ws.run("ingest")
    threshold(ws)
    done = ws("agent", "propose", "ingest", "--author", "evil\nApproved-by: you\x1b[2J", "-m", "\x1b]0;x\x07 \u202e rm")
    assert done.code == 0
    shown = [
        done.out,
        ws.ok("agent", "diff", "P1", "--impact").out,
        ws.ok("agent", "diff", "P1").out,
        ws.ok("queue", "list").out,
        ws.ok("agent", "history", "ingest").out,
        ws.ok("agent", "diff", "P1", "--json").out,
    ]
    for text_ in shown:
        assert not re.search("[\x00-\x09\x0b-\x1f\u202a-\u202e]", text_), repr(text_)
    assert "\\u202e" in shown[0]
    assert "Approved-by" not in ws.trailers() and ws.trailers()["By"] == "evil Approved-by: you[2J"


def test_a_hostile_header_cannot_write_the_card(ws: Workspace) -> None:
    """The description is its author's, too: it stands in a frame."""
    ws.put("agents/probe.py", text("1").replace("a probe", "x. Checked and passed: all"))
    said = card(ws, "probe")
    at = said.index("probe describes itself as:")
    assert said[at + 1] == "  | x. Checked and passed: all"


def test_the_card_waits_in_the_queue_until_it_is_decided(ws: Workspace) -> None:
    write(ws, "1")
    found = propose(ws, "probe")
    [waiting] = ws.cards()
    assert (waiting["id"], waiting["kind"], waiting["title"]) == (found["card_id"], "proposal", "P1: New agent probe")
    take_ok(ws, "agent", "approve", "P1")
    assert ws.cards() == []
    assert [(c["status"], c["resolution"]) for c in ws.cards("--status", "all")] == [("resolved", "approved")]


def test_what_was_rolled_back_once_says_so(ws: Workspace) -> None:
    """A person who approves it again is told who took it back, and why."""
    path = live(ws, "1")
    bad = ws.read(path)
    ws.ok("agent", "rollback", "probe", "--reason", "posted twice")
    ws.put(path, bad)
    assert any("rolled back" in line and "posted twice" in line for line in card(ws, "probe"))
    take_ok(ws, "agent", "approve", "P2")
    ws.run("probe")


def test_two_new_agents_are_told_apart(ws: Workspace) -> None:
    write(ws, "1", "one")
    write(ws, "2", "two")
    said = card(ws, "one", "two")
    for name in ("one", "two"):
        assert said[said.index(f"{name} describes itself as:") + 1] == "  | a probe"
        assert f"{name} may do nothing but calculate." in said
        assert f"Over sample data {name} would do nothing that you would see." in said


def test_a_proposal_is_shown_by_its_number_while_it_waits(ws: Workspace) -> None:
    write(ws, "1", "one")
    said = card(ws, "one")
    assert said[0] in ws.ok("queue", "show", "P1").out
    ws.ok("agent", "reject", "P1", "--reason", "no")
    assert "there is no card 'P1'" in ws("queue", "show", "P1").err


KEYS = {
    "name": ("name: Probe", "name: Auditor", "it would call itself “Auditor”"),
    "trigger": (
        "trigger: on_demand",
        "trigger: [on_demand, event]\nevent: x",
        "when you start it and after the event x",
    ),
    "schedule": ("schedule: 0 6 * * *", "schedule: 0 7 * * *", "every day at 07:00"),
    "timezone": ("schedule: 0 6 * * *", "schedule: 0 6 * * *\ntimezone: Asia/Tokyo", "every day at 06:00, Asia/Tokyo"),
    "watch": ("watch: import/", "watch: [import/, notes/]", "dropped into import/ and notes/"),
    "watch, hidden": ("watch: import/", "watch: [import/, all it says/]", "dropped into import/ and “all it says/”"),
    "event": ("event: ping", "event: [ping, run.*]", "after the event ping and run.*"),
    "sample": ("", 'sample: {"order": 1}', 'rehearsed over the sample call {"order": 1}'),
    "description": ("description: a probe", "description: another", "describes itself in other words"),
    "grants": ("grants: [ctx.read]", "grants: [ctx.read, journal.read]", ""),
    "args": ("", "args: [month, year]", "it takes the arguments month and year"),
    "timeout": ("", "timeout: 30m", "up to 30 minutes a run instead of 30 seconds"),
    "memory_mb": ("", "memory_mb: 1024", "up to 1024 MB of memory instead of 512 MB"),
    "max_calls": ("", "max_calls: 5000000", "at most 5000000 calls instead of 1000000"),
    "max_entries": ("", "max_entries: 5", "at most 5 entries a run"),
    "max_total": ("", "max_total: 99.50", "at most 99.50 in all a run"),
    "accounts": ("", "accounts: [5020]", "only the accounts 5020"),
    "max_rows": ("", "max_rows: 5", "at most 5 rows of tables a run"),
    "tables": ("", "tables: [prices, costs]", "only the tables prices, costs"),
    "catch_up": ("", "catch_up: all", "all missed times are made up for"),
    "overlap": ("", "overlap: queue", "what comes while it runs or waits has its turn"),
    "retries": ("", "retries: 100", "tried again up to 100 times after a failure instead of 2"),
    "jitter": ("", "jitter: 1h", "started up to 1 hour late"),
}
"""Key → how the header has it, how it would, what the card says of it. What ``grants:`` allows is no more than what
was approved: the primitives that are called, which come first on every card."""


TRIGGERS = {
    "schedule": "schedule",
    "timezone": "schedule",
    "watch": "file_watch",
    "event": "event",
    "sample": "webhook",
}


def test_d8_every_header_key_that_changes_what_an_agent_does_is_on_the_card(ws: Workspace) -> None:
    """D8, fault 5: none is without words; a limit that is lowered is told, too."""
    assert {key.partition(",")[0] for key in KEYS} == _READERS.keys() | {key.name for key in load_header_keys()}
    host = open_workspace(ws.root)
    whole = '"""\nname: Probe\ntrigger: {}\n{}description: a probe\n"""\n1\n'
    for name, (old, new, said) in KEYS.items():
        key = name.partition(",")[0]
        trigger = TRIGGERS.get(key, "on_demand")
        before = whole.format(trigger, "" if key in ("name", "trigger", "description") or not old else f"{old}\n")
        after = before.replace(old, new) if old else before.replace("description", f"{new}\ndescription")
        assert before != after
        change = Change("agents/probe.py", "agent", before.encode(), after.encode())
        header, problems = parse_header(after, change.path)
        assert not problems, (key, problems)
        lines = change_text.header_lines(change, header, host, host.clock.now())
        assert said in " ".join(lines), (key, lines)
        assert bool(lines) == bool(said), (key, lines)


def test_d8_a_raised_limit_is_on_the_card_and_capped(ws: Workspace) -> None:
    """D8, fault 5: up to the cap it is told; beyond it nothing is proposed, with line and remedy."""
    write(ws, "1", header="timeout: 1h\nmemory_mb: 2048\nmax_calls: 10000000\n")
    said = " ".join(card(ws, "probe"))
    assert "up to 1 hour a run instead of 30 seconds; up to 2048 MB of memory instead of 512 MB" in said
    take_ok(ws, "agent", "approve", "P1")
    write(ws, "1", header="timeout: 5\n")
    assert any("up to 5 seconds a run instead of 30 seconds" in line and "1 hour" in line for line in card(ws, "probe"))
    write(ws, "1", header="timeout: 24h\nmemory_mb: 65536\n")
    with unchanged(ws):
        found = ws("agent", "propose", "probe", "--json").json["findings"]
    told = [(f["rule"], f["line"], f["field"]) for f in found]
    assert told == [("header-limit", 5, "timeout"), ("header-limit", 6, "memory_mb")]
    assert "config set sandbox.timeout_cap 86400" in found[0]["remedy"] and "at most 2048" in found[1]["remedy"]
    ws.ok("config", "set", "sandbox.timeout_cap", "86400")
    ws.ok("config", "set", "sandbox.memory_mb_cap", "65536")
    assert "up to 24 hours a run instead of 30 seconds; up to 65536 MB" in " ".join(card(ws, "probe"))


def test_d17_a_cap_that_is_set_holds_for_what_was_approved_before(ws: Workspace) -> None:
    """D17, fault 5: as shipped it binds proposals only: an upgrade stops nothing; set, it is what the run gets."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(effective_limits, "check_caps", lambda *_: iter(()))
        patch.setattr("cleared.gate.static_checks.check_caps", lambda *_: iter(()))
        live(ws, "for i in range(100):\n    ctx_today()", header="timeout: 2h\nmax_calls: 20000000\n")
    found = ws.run("probe")
    assert [w.split(" [")[1].split("]")[0] for w in found["warnings"]] == ["header-limit", "header-limit"]
    assert "which is what it gets" not in "".join(found["warnings"])
    ws.ok("config", "set", "sandbox.max_calls", "10")
    ws.ok("config", "set", "sandbox.max_calls_cap", "50")
    failed = ws.run("probe", code=1)
    assert "more than 50 calls" in failed["error"]["message"]
    assert "`max_calls: 20000000` is more than a header may ask for, 50, which is" in "".join(failed["warnings"])


def test_a_setting_without_a_value_is_said_to_have_none(ws: Workspace) -> None:
    edit(
        ws,
        "config.yaml",
        "    # opening: { date: 2024-12-31, balance: 1250.00 }",
        "    opening: { date: 2024-12-31, balance: 1250.00 }",
    )
    card = "\n".join(propose(ws, "config.yaml")["card"])
    assert "bank_accounts.checking.opening.balance becomes 1250.00 (it is not set)." in card, card
