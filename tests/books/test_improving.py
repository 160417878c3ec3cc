"""``cleared improve``: what decisions teach is proposed with its evidence; a person approves. Row D6, documents 003."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fake_provider import FakeProvider
from harness import Workspace, chase, refused, take_ok
from scripted_model import KEY, script_change, use_provider, write_file

from cleared.cli.options import open_host
from cleared.gate.proposals.improving import improve_agents

pytestmark = pytest.mark.slow

PATH = "agents/ingest.py"
BLUEBIRD = "BLUEBIRD HOLDINGS (money out, from 20, up to 200) → 5040"


def decide(ws: Workspace, text: str, accounts: list[int], month: int = 1, amount: str = "-50.00") -> None:
    """One bank line of this text for each account, all of which a person books so."""
    rows = [(f"{month:02}/{n:02}/2025", f"{text} {month}{n}{n}", amount) for n in range(1, len(accounts) + 1)]
    known = {e["entry_id"] for e in ws.entries()}
    ws.drop(f"{len(known)}.csv", chase(*rows))
    ws.run("ingest")
    new = [e["entry_id"] for e in sorted(ws.entries(), key=lambda e: str(e["date"])) if e["entry_id"] not in known]
    for entry_id, account in zip(new, accounts, strict=True):
        ws.ok("queue", "correct", entry_id, "--account", str(account))


def documented(ws: Workspace) -> str:
    """Document 003's ingest, live in the place of the starter; its text."""
    ws.put("agents/ingest.py", (Path(__file__).parents[1] / "sandbox/document_003_ingest.txt").read_text())
    ws.commit("agents/ingest.py", *ws.approve("agents/ingest.py"))
    return ws.read(PATH)


def improve(ws: Workspace) -> dict[str, Any]:
    found = ws.json("improve")
    assert isinstance(found, dict)
    return found


def test_three_equal_decisions_become_one_card_and_one_key(ws: Workspace) -> None:
    before = ws.read(PATH)
    decide(ws, "BLUEBIRD HOLDINGS", [5040, 5040])
    assert improve(ws)["proposed"] == [], "two are too few"
    decide(ws, "BLUEBIRD HOLDINGS", [5040], month=2, amount="-70.00")
    done = improve(ws)
    assert done["proposals"] == ["P1"] and done["proposed"] == [
        {
            "file": PATH,
            "change": f"{BLUEBIRD} from now on",
            "says": f"{BLUEBIRD} from now on, as you decided 3 of 3 times. "
            "It would have booked 3 past lines, all as you did.",
        }
    ]
    assert ws.read(PATH) == before, "nothing is live by it"
    assert improve(ws)["proposals"] == ["P1"], "the same change is the same proposal"
    said = ws.process("review", stdin=b"a\nq\n")
    assert "as you decided 3 of 3 times" in " ".join(said.out.replace("|", " ").split()), said.out
    assert "P1 is live now" in said.out, said.out
    row = '    ("BLUEBIRD HOLDINGS", "Bluebird Holdings", 5040, 0.99, {"money": "out", "min": 20, "max": 200}),\n'
    assert ws.read(PATH).replace(row, "") == before, "every other byte stays"
    assert improve(ws)["proposed"] == []
    ws.drop("next.csv", chase(("02/08/2025", "BLUEBIRD HOLDINGS 9", "-60.00")))
    ws.run("ingest")
    assert ws.entries("--month", "2025-02")[-1]["status"] == "auto-confirmed"
    ws.in_order()


def test_why_names_the_row_that_booked_an_entry(ws: Workspace) -> None:
    """One that was taught, one that was learned, and of two that fit the more special one."""
    ws.ok("teach", "BLUEBIRD", "5070", "--vendor", "Bluebird", "--yes")
    ws.put(PATH, ws.read(PATH).replace('"Bluebird", 5070, 0.99)', '"Bluebird", 5070, 0.5)'))
    ws.commit(PATH, *ws.approve(PATH))
    decide(ws, "BLUEBIRD HOLDINGS", [5040] * 3)
    proposal = improve(ws)["proposals"][0]
    take_ok(ws, "agent", "approve", proposal)
    ws.drop("next.csv", chase(("02/08/2025", "BLUEBIRD HOLDINGS 9", "-60.00"), ("02/09/2025", "BLUEBIRD 9", "-60.00")))
    ws.run("ingest")
    learned, taught = (e["entry_id"] for e in sorted(ws.entries("--month", "2025-02"), key=lambda e: str(e["date"])))
    said = ws.ok("why", learned).out
    assert "vendor table: BLUEBIRD HOLDINGS (money out, min 20, max 100)" in said and f"({proposal}-" in said
    assert ws.json("why", taught)["call"]["arguments"]["evidence"] == "vendor table: BLUEBIRD"
    assert "vendor table: BLUEBIRD'" in ws.ok("why", taught).out


def test_a_larger_amount_widens_the_row_and_leaves_no_second(ws: Workspace) -> None:
    decide(ws, "BLUEBIRD HOLDINGS", [5040] * 3)
    take_ok(ws, "agent", "approve", improve(ws)["proposals"][0])
    decide(ws, "BLUEBIRD HOLDINGS", [5040], month=2, amount="-400.00")
    take_ok(ws, "agent", "approve", improve(ws)["proposals"][0])
    rows = [line for line in ws.read(PATH).splitlines() if "BLUEBIRD" in line]
    assert rows == [
        '    ("BLUEBIRD HOLDINGS", "Bluebird Holdings", 5040, 0.99, {"money": "out", "min": 20, "max": 1000}),'
    ]


def test_amounts_apart_become_two_rows(ws: Workspace) -> None:
    decide(ws, "HARBOR TOOLS", [5060] * 3)
    decide(ws, "HARBOR TOOLS", [1500] * 3, month=2, amount="-900.00")
    assert [each["change"] for each in improve(ws)["proposed"]] == [
        "HARBOR TOOLS (money out, from 20, up to 50) → 5060 from now on",
        "HARBOR TOOLS (money out, from 900, up to 2000) → 1500 from now on",
    ]


def test_a_rejected_change_is_not_proposed_again(ws: Workspace) -> None:
    decide(ws, "BLUEBIRD HOLDINGS", [5040] * 3)
    ws.ok("agent", "reject", improve(ws)["proposals"][0], "--reason", "it depends")
    decide(ws, "BLUEBIRD HOLDINGS", [5040], month=2)
    assert improve(ws)["proposed"] == []
    decide(ws, "BLUEBIRD HOLDINGS", [5040], month=3, amount="-900.00")
    assert improve(ws)["proposed"] == [], "nor for other amounts"


@pytest.mark.parametrize("name", ["3M COMPANY", "7-ELEVEN", "24 HOUR FITNESS", "B2B WAVE"])
def test_a_name_may_begin_with_a_digit(ws: Workspace, name: str) -> None:
    decide(ws, name, [5040] * 3)
    assert improve(ws)["proposed"][0]["change"] == f"{name} (money out, from 20, up to 100) → 5040 from now on"
    decide(ws, name, [5060, 5060], month=2)
    assert improve(ws)["asked"][0].startswith(f"{name} (money out) went 3 times")


def test_a_contradiction_is_one_question_and_its_answer_a_proposal(ws: Workspace) -> None:
    decide(ws, "CORNER SHOP", [5070, 5060, 5070, 5070])
    done = improve(ws)
    assert done["proposed"] == [] and done["asked"] == [
        "CORNER SHOP (money out) went 3 times to 5070 and 1 time to 5060: is one of them always right?"
    ]
    assert improve(ws)["asked"] == [], "asked once"
    card = next(c for c in ws.cards() if c["kind"] == "contradiction")
    shown = ws.ok("queue", "show", card["id"]).out
    assert "5060" in shown and "the others were exceptions" in shown
    ws.ok("queue", "answer", card["id"], "most")
    says = improve(ws)["proposed"][0]["says"]
    assert "as you decided 3 of 3 times" in says and "1 otherwise than they are booked" in says
    ws.in_order()


def test_another_proposal_about_the_agent_is_left_alone(ws: Workspace) -> None:
    decide(ws, "BLUEBIRD HOLDINGS", [5040] * 3)
    ws.ok("teach", "GITHUB", "5060")
    done = improve(ws)
    assert done["proposed"] == [] and done["held"] == [f"{PATH} is left alone while P1 waits"]


def test_budgets_hold_what_a_program_does_by_itself(ws: Workspace) -> None:
    """The same as a job: five rows of one agent at most, and none within a day of its last change."""
    for number in range(6):
        decide(ws, f"VENDOR {'ABCDEF'[number]}X", [5060] * 3, amount=f"-{number + 1}0.00")
    ws.config("self_improvement.max_changes_per_agent=4")
    done = improve(ws)
    assert len(done["proposed"]) == 4
    take_ok(ws, "agent", "approve", done["proposals"][0])
    held = improve_agents(open_host(ws.root), is_asked=False)
    assert held.proposed == [] and "programs leave it alone until" in held.held[0]
    assert len(improve(ws)["proposed"]) == 2, "a person may ask for it now"


def test_rows_that_another_covers_are_proposed_to_go(ws: Workspace) -> None:
    twice = '    ("AWS", "Amazon Web Services", 5020, 0.96),\n'
    text = ws.read(PATH)
    ws.put(PATH, text.replace(twice, f'{twice}    ("AWS EMEA", "Amazon", 5030, 0.96),\n{twice}'))
    ws.commit(PATH, *ws.approve(PATH))
    ws.drop("january.csv")
    ws.run("ingest")
    changes = {each["change"]: each["says"] for each in improve(ws)["proposed"]}
    assert changes["No row any more: AWS EMEA → 5030."].endswith(
        "The row AWS → 5020 stands before it and takes all its lines."
    )
    take_ok(ws, "agent", "approve", "P1")
    assert ws.read(PATH) == text


def test_a_row_that_counted_once_and_no_longer_is_proposed_to_go(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    ws.drop("old.csv", chase(("01/03/2025", "GITHUB 1", "-5.00"), ("01/04/2025", "AWS 1", "-6.00")))
    ws.run("ingest")
    monkeypatch.setenv("CLEARED_CLOCK", "2026-04-01T08:00:00Z")
    ws.drop("new.csv", chase(("03/20/2026", "AWS 2", "-7.00")))
    ws.run("ingest")
    changes = {each["change"]: each["says"] for each in improve(ws)["proposed"]}
    assert "No row any more: AWS → 5020." not in changes
    assert changes["No row any more: GITHUB → 5020."].endswith("No line has had its words since 2025-01-03.")


def test_a_removal_that_does_not_pass_is_not_in_the_way_of_others(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row whose lines a person corrected: their test wants it."""
    decide(ws, "BLUEBIRD HOLDINGS", [5040] * 3)
    take_ok(ws, "agent", "approve", improve(ws)["proposals"][0])
    monkeypatch.setenv("CLEARED_CLOCK", "2026-04-01T08:00:00Z")
    ws.drop("new.csv", chase(("03/20/2026", "TEA 2", "-7.00")))
    ws.run("ingest")
    done = improve(ws)
    assert [each["change"].split(" → ")[0] for each in done["proposed"]] == [
        f"No row any more: {words}" for words in ("GITHUB", "AWS", "PAYMENT TO CHASE CARD", "PAYMENT THANK YOU")
    ]
    (held,) = done["held"]
    assert held.startswith("No row any more: BLUEBIRD HOLDINGS") and "corrected by a person" in held


def test_poisoned_texts_teach_nothing_and_are_harmless_on_cards(ws: Workspace) -> None:
    """Whoever writes bank texts chooses words: what a person decided otherwise is in the way, and nothing escapes."""
    decide(ws, "PAYROLL", [5110] * 3)
    decide(ws, "PAYROLL TAX", [2200], month=2)
    assert improve(ws)["proposed"] == [], "PAYROLL would take PAYROLL TAX in"
    decide(ws, 'EVIL"),("X","X",3200,1.0)[31m', [5060] * 3, month=2)
    done = improve(ws)
    assert all(each["change"].startswith("EVIL") for each in done["proposed"])
    card = ws.process("queue", "list").out + ws.process("improve").out
    assert "\x1b" not in card
    assert '("X","X",3200,1.0)' not in ws.read(PATH)


def test_what_was_booked_as_sure_and_wrong_too_often_raises_the_threshold(ws: Workspace) -> None:
    """AWS is booked at 0.96, GITHUB at 0.98, without asking from 0.95 on."""
    rows = [(f"01/{n:02}/2025", f"{text} {n}", "-5.00") for text in ("AWS", "GITHUB") for n in range(1, 13)]
    ws.drop("a.csv", chase(*rows))
    ws.run("ingest")
    assert improve(ws)["proposed"] == []
    wrong = [e["entry_id"] for e in ws.entries() if str(e["description"]).startswith("AWS")][:4]
    ws.ok("queue", "correct", *wrong, "--account", "5060")
    says = "Ask about what is less sure than 0.98: of 24 records booked as sure from 0.95 on, you corrected 4"
    (found,) = (each for each in improve(ws)["proposed"] if each["file"] == "config.yaml")
    assert found["says"] == f"{says}. From 0.98 on it was 0 of 12."
    card = next(c for c in ws.cards() if says in c["title"])
    number = card["title"].partition(":")[0]
    take_ok(ws, "agent", "approve", number)
    assert ws.json("config", "get", "thresholds.auto_confirm") == 0.98
    assert not [each for each in improve(ws)["proposed"] if each["file"] == "config.yaml"]


def test_a_shared_script_that_no_agent_runs_is_named(ws: Workspace) -> None:
    assert improve(ws)["findings"] == [], "monthly_summary runs vendor_name"
    ws.shared("helper", "1\n")
    assert improve(ws)["findings"] == ["scripts/helper.py: no agent runs it. Is it needed still?"]


def test_a_branch_that_no_run_takes_is_named(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cleared.gate.unused_code._LEAST_RUNS", 3)
    ws.agent(
        "probe",
        'journal_add_double(date="2025-01-03", description="tea", debit_account=5020, credit_account=1010, amount="1", '
        'status="auto-confirmed")\nif len(importer_scan()) > 5:\n    if ctx_today() > "2030":\n        '
        'ctx_log("late")\n    ctx_log("many")\nelse:\n    ctx_log("few")\ngit_commit("post: tea")\n',
    )
    for _ in range(3):
        assert improve(ws)["findings"] == []
        ws.run("probe")
    said = "agents/probe.py: none of 3 runs came to line 7 (if ctx_today() > '2030':). Is it needed still?"
    assert improve(ws)["findings"] == [said] and said in ws.ok("improve").out


AMOUNTS = 'txn["amount"] < 0 and abs(txn["amount"]) >= 20 and abs(txn["amount"]) <= {}'
ELIF = f"""            elif "BLUEBIRD HOLDINGS" in desc and {AMOUNTS}:
                account_id = 5040
                confidence = 0.99
                vendor = "Bluebird Holdings"
"""


def test_a_script_without_a_table_gets_one_branch_more(ws: Workspace) -> None:
    """Document 003: the rules are lines of the script, which learning rewrites."""
    before = documented(ws)
    decide(ws, "BLUEBIRD HOLDINGS", [5040, 5040, 5040])
    done = improve(ws)
    assert [each["change"] for each in done["proposed"]] == [
        "BLUEBIRD HOLDINGS (money out, from 20, up to 100) → 5040 from now on"
    ]
    take_ok(ws, "agent", "approve", "P1")
    after = ws.read(PATH)
    at = after.index('            elif "BLUEBIRD')
    assert after[: after.index("Amazon Web Services")] in before and at > after.index("Amazon Web Services")
    assert after.replace(ELIF.format(100), "") == before, "every other byte stays"
    assert improve(ws)["proposed"] == []
    ws.drop("next.csv", chase(("02/08/2025", "BLUEBIRD HOLDINGS 9", "-60.00"), ("02/09/2025", "BLUEBIRD", "-60.00")))
    ws.run("ingest")
    assert [e["status"] for e in ws.entries("--month", "2025-02")] == ["auto-confirmed", "pending-review"]
    decide(ws, "BLUEBIRD HOLDINGS", [5040], month=3, amount="-190.00")
    assert improve(ws)["proposals"] == ["P2"]
    take_ok(ws, "agent", "approve", "P2")
    assert ws.read(PATH) == after.replace(ELIF.format(100), ELIF.format(500)), "the branch, for that amount too"
    ws.in_order()


def test_what_a_branch_cannot_say_is_not_proposed_as_one(ws: Workspace) -> None:
    documented(ws)
    decide(ws, "INVOICE PAID", [4020, 4020, 4020], amount="50.00")
    decide(ws, "RED LION", [5040, 5040, 5040])
    decide(ws, "FARED LION", [5060], month=2)
    assert improve(ws)["proposed"] == [], "its account is for money out; words would stand in another payee's"


def test_a_model_may_write_what_a_script_has_no_place_for(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The evidence is the request, and the gate is the same."""
    before = documented(ws)
    decide(ws, "INVOICE PAID", [4020, 4020, 4020], amount="50.00")
    title = "INVOICE PAID (money in, from 20, up to 100) → 4020 from now on, as you decided 3 of 3 times"
    found = improve(ws)
    assert found["unwritten"] == [{"file": PATH, "says": title}] and found["proposed"] == []
    assert "cleared improve --model" in ws.ok("improve").err
    refused(ws("improve", "--model", "--json"), 2, "leave out --json")
    refused(ws("improve", "--model"), 4, "llm.")
    monkeypatch.setenv("TEST_MODEL_KEY", KEY)
    with FakeProvider() as provider:
        use_provider(ws, provider)
        script_change(provider, write_file(PATH, before.replace("credit_account=4010", "credit_account=4020")))
        done = ws("improve", "--model")
        assert done.code == 0 and provider.left == 0, done
        assert title in provider.requests[0].text and "no instructions" in provider.requests[0].text
        assert ws.read(PATH) == before and ws.cards()[-1]["kind"] == "proposal", "it waits for a person"
        assert improve(ws)["unwritten"] == [], "which it does"
        ws.ok("improve", "--model")
    monkeypatch.setenv("CLEARED_CLOCK", "2025-02-10T09:00:00Z")
    take_ok(ws, "agent", "approve", "P1")
    assert improve(ws)["unwritten"] == [], "a newer version may have it"


def test_a_wider_branch_gets_the_new_one_before_it(ws: Workspace) -> None:
    """What was booked without asking, too: the run says which agent did, though others have a table."""
    ws.put("agents/other.py", ws.read(PATH).replace("name: Ingest", "name: Other"))
    ws.commit("agents/other.py", *ws.approve("agents/other.py"))
    before = documented(ws)
    decide(ws, "GITHUB SPONSORS", [5040, 5040, 5040])
    improve(ws)
    take_ok(ws, "agent", "approve", "P1")
    after = ws.read(PATH)
    branch = ELIF.format(100).replace("BLUEBIRD HOLDINGS", "GITHUB SPONSORS").replace("Bluebird Holdings", "GitHub")
    new = branch.replace("            elif ", "            if ", 1) + "            elif "
    assert after == before.replace('            if "GITHUB" in', f'{new}"GITHUB" in')
    assert improve(ws)["proposed"] == []
    decide(ws, "Lower   Case", [5060, 5060, 5060], month=2)
    improve(ws)
    assert '+            elif "Lower   Case" in desc and' in ws.ok("agent", "diff", "P2").out, "as the bank writes it"
    ws.ok("agent", "reject", "P2", "--reason", "no")
    assert improve(ws)["proposed"] == [], "what was rejected is not proposed again"
    ws.in_order()
