"""Work adds up (F40): what cycles leave waits together, and each goes on with it until a person has decided."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from fake_engine import FakeEngine, good, start
from forked import Forks
from harness import Workspace, take_ok
from web_client import page_server

PENDING = "cleared-cycle/pending"
WORK = """
import json, pathlib, sys
plan = json.loads(sys.argv[1])
for name in plan["sees"]:
    path = pathlib.Path(name)
    print("SEEN", name, path.read_text() if path.exists() else "none", file=sys.stderr)
for name, text in plan["files"].items():
    path = pathlib.Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink() if text is None else path.write_text(text)
"""


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    with Forks() as found:
        yield found


def run(ws: Workspace, engine: FakeEngine, number: int, sees: tuple[str, ...] = (), **write: str | None) -> str:
    """One more cycle, which prints what it finds at ``sees`` and then writes each ``docs/NAME.md``; what it printed,
    and its prompt."""
    return run_writing(ws, engine, number, {f"docs/{name}.md": text for name, text in write.items()}, sees)


def run_writing(
    ws: Workspace, engine: FakeEngine, number: int, files: dict[str, str | None], sees: tuple[str, ...] = ()
) -> str:
    (engine.folder / "work.py").write_text(WORK)
    plan = json.dumps({"sees": list(sees), "files": files})
    engine.plan(good(f"Cycle {number}.", run=[str(engine.folder / "work.py"), plan]))
    done = start(ws, engine)
    assert done.code == 0, done
    (log,) = ws.root.glob(f"logs/cycle-claude-{number:04d}-*")
    return log.read_text() + str(engine.calls[-1]["prompt"])


def branch_card(ws: Workspace) -> dict[str, Any]:
    (card,) = [card for card in ws.cards() if card["kind"] in ("branch", "cycle_note")]
    return card


def on_branch(ws: Workspace, branch: str = PENDING) -> dict[str, str]:
    """Path → content of what the branch has otherwise than the commit of the workspace that it goes on."""
    paths = ws.git("diff", "--name-only", "--no-renames", f"{branch}^1", branch).split()
    return {path: ws.git("show", f"{branch}:{path}", check=False) for path in paths}


def test_f40_two_cycles_on_one_file_are_one_branch_and_one_card(cyc: Workspace, engine: FakeEngine) -> None:
    run(cyc, engine, 1, a="one\n")
    first = branch_card(cyc)
    assert "SEEN docs/a.md one" in run(cyc, engine, 2, ("docs/a.md",), a="one\ntwo\n", b="b\n")
    card = branch_card(cyc)
    assert cyc.git("for-each-ref", "--format=%(refname:short)", "refs/heads/cleared-cycle").split() == [PENDING]
    assert on_branch(cyc) == {"docs/a.md": "one\ntwo\n", "docs/b.md": "b\n"}
    assert card["details"]["cycles"] == ["claude-0001", "claude-0002"] and "2 AI cycles" in card["title"]
    refusal = cyc("queue", "answer", first["id"], "merge")
    assert refusal.code == 3 and "grew" in refusal.err, "what a person looked at is not what is there by now"
    shown = cyc.ok("queue", "show", card["id"]).out
    assert "+one" in shown and "+two" in shown and "+b" in shown
    cyc.ok("queue", "answer", card["id"], "merge")
    assert (cyc.read("docs/a.md"), cyc.read("docs/b.md")) == ("one\ntwo\n", "b\n")
    told = run(cyc, engine, 3, ("docs/a.md",), c="c\n")
    assert "SEEN docs/a.md one\ntwo" in told and "The work of earlier cycles" not in told
    assert on_branch(cyc) == {"docs/c.md": "c\n"} and branch_card(cyc)["details"]["cycles"] == ["claude-0003"]
    cyc.ok("check")


def test_f40_what_a_person_drops_is_gone_from_the_next_cycle(cyc: Workspace, engine: FakeEngine) -> None:
    run(cyc, engine, 1, a="one\n")
    told = run(cyc, engine, 2, ("docs/a.md",))
    assert "SEEN docs/a.md one" in told and "waiting for a person, who may still refuse it: docs/a.md" in told
    cyc.ok("queue", "answer", branch_card(cyc)["id"], "drop")
    told = run(cyc, engine, 3, ("docs/a.md",), b="b\n")
    assert "SEEN docs/a.md none" in told and "do not make it again: docs/a.md" in told
    assert on_branch(cyc) == {"docs/b.md": "b\n"}
    assert cyc.git("log", "--format=%s", PENDING).count("cycle: what claude-0001 changed") == 1, "it can be looked at"


def test_f40_parts_are_left_out(cyc: Workspace, engine: FakeEngine) -> None:
    run(cyc, engine, 1, a="a\n", b="b\n")
    card = branch_card(cyc)
    assert cyc("queue", "answer", card["id"], "merge", "--without", "docs/none.md").code == 2
    assert cyc("queue", "answer", card["id"], "drop", "--without", "docs/a.md").code == 2
    assert cyc("queue", "answer", card["id"], "merge", "--without", "docs/a.md", "--without", "docs/b.md").code == 2
    with page_server(cyc) as server:
        page = server.get(f"/queue?card={card['id']}")
        assert page.fields("without") == ["docs/a.md", "docs/b.md"]
        answer = server.submit(page, "/queue", ("choice", "answer:merge"), ("without", "docs/b.md"))
        assert "Answered “" in answer.text, answer.text
    assert (cyc.root / "docs/a.md").exists() and not (cyc.root / "docs/b.md").exists()
    told = run(cyc, engine, 2, ("docs/a.md", "docs/b.md"))
    assert "SEEN docs/a.md a" in told and "SEEN docs/b.md none" in told and "again: docs/b.md" in told
    assert not cyc.cards()


def test_f40_a_file_that_its_next_cycle_takes_back_asks_nothing(cyc: Workspace, engine: FakeEngine) -> None:
    run(cyc, engine, 1, a="a\n")
    run(cyc, engine, 2, a=None)
    assert not cyc.cards()
    run(cyc, engine, 3, a="again\n")
    assert on_branch(cyc) == {"docs/a.md": "again\n"} and branch_card(cyc)["details"]["cycles"] == ["claude-0003"]


def test_f40_what_a_person_edits_meanwhile_stays(cyc: Workspace, engine: FakeEngine) -> None:
    lines = [f"line {number}\n" for number in range(9)]
    cyc.put("docs/a.md", "".join(lines))
    cyc.put("docs/b.md", "b\n")
    cyc.commit("docs/a.md", "docs/b.md")
    run(cyc, engine, 1, a="".join(["first\n", *lines[1:]]), b="theirs\n")
    cyc.put("docs/a.md", "".join([*lines[:8], "last\n"]))
    cyc.put("docs/b.md", "yours\n")
    cyc.commit("docs/a.md", "docs/b.md")
    both = "".join(["first\n", *lines[1:8], "last\n"])
    assert "SEEN docs/b.md yours" in run(cyc, engine, 2, ("docs/b.md",), c="c\n")
    assert on_branch(cyc) == {"docs/a.md": both, "docs/c.md": "c\n"}
    (note,) = branch_card(cyc)["details"]["notes"]
    assert note.startswith("you changed docs/b.md meanwhile, and yours stays: git show ")
    assert cyc.git("show", note.rpartition(" ")[2]) == "theirs\n"


def test_f40_proposals_of_cycles_are_one(cyc: Workspace, engine: FakeEngine) -> None:
    """A second cycle goes on with what the first has proposed; rejected, it is gone."""
    agent = '"""\nname: Greeter\ndescription: Greets\n"""\n{{"said": "{}"}}\n'
    run_writing(
        cyc,
        engine,
        1,
        {"agents/greeter.py": agent.format("hello"), "agents/other.py": agent.replace("Greeter", "Other").format("o")},
    )
    told = run_writing(cyc, engine, 2, {"agents/greeter.py": agent.format("good day")}, ("agents/greeter.py",))
    assert '{"said": "hello"}' in told
    (card,) = cyc.cards()
    folder = card["details"]["proposal"]
    number = folder.partition("-")[0]
    proposal = json.loads(cyc.read(f"queue/proposals/{folder}/proposal.json"))
    assert {file["path"] for file in proposal["files"]} == {"agents/greeter.py", "agents/other.py"}
    cyc.ok("agent", "reject", number, "--reason", "no")
    told = run_writing(cyc, engine, 3, {}, ("agents/greeter.py", "agents/other.py"))
    assert "SEEN agents/greeter.py none" in told and "SEEN agents/other.py none" in told
    assert f"agents/greeter.py, agents/other.py ({number})" in told


def test_f40_what_the_gate_refuses_keeps_no_other_file(cyc: Workspace, engine: FakeEngine) -> None:
    run_writing(cyc, engine, 1, {"agents/ingest.py": "import os\n", "docs/a.md": "a\n"})
    card = branch_card(cyc)
    assert "agents/ingest.py (not merged: it takes a proposal" in cyc.ok("queue", "show", card["id"]).out
    before = cyc.read("agents/ingest.py")
    cyc.ok("queue", "answer", card["id"], "merge")
    assert cyc.read("agents/ingest.py") == before and cyc.read("docs/a.md") == "a\n"


def test_f40_a_commit_of_ones_own_on_the_branch_is_left_alone(cyc: Workspace, engine: FakeEngine) -> None:
    run(cyc, engine, 1, a="a\n")
    cyc.git("checkout", "-q", PENDING)
    cyc.put("docs/a.md", "mine\n")
    cyc.git("commit", "-qam", "mine")
    cyc.git("checkout", "-q", "main")
    own = cyc.git("rev-parse", PENDING)
    assert "SEEN docs/a.md none" in run(cyc, engine, 2, ("docs/a.md",), b="b\n")
    assert cyc.git("rev-parse", PENDING) == own and on_branch(cyc, f"{PENDING}-2") == {"docs/b.md": "b\n"}
    assert {card["details"]["branch"] for card in cyc.cards()} == {PENDING, f"{PENDING}-2"}


def test_f40_a_card_that_somebody_wrote_anew_is_left_alone(cyc: Workspace, engine: FakeEngine) -> None:
    """No person has refused what it asks about: no cycle is told so, and none goes on with it."""
    run(cyc, engine, 1, a="a\n")
    tip, card = cyc.git("rev-parse", PENDING), branch_card(cyc)["id"]
    lines = [line for path in cyc.root.glob("queue/*.jsonl") for line in path.read_text().splitlines()]
    (line,) = [each for each in lines if card in each]
    cyc.put("queue/2024-01.jsonl", line.replace("changed 1 file", "changed nothing") + "\n")
    cyc.commit("queue/2024-01.jsonl")
    told = run(cyc, engine, 2, ("docs/a.md",), b="b\n")
    assert "SEEN docs/a.md none" in told and "do not make it again" not in told
    assert cyc.git("rev-parse", PENDING) == tip and on_branch(cyc, f"{PENDING}-2") == {"docs/b.md": "b\n"}


def test_f40_what_a_cycle_tells_the_next_is_known(cyc: Workspace, engine: FakeEngine) -> None:
    """And what somebody else puts there is not."""
    run_writing(cyc, engine, 1, {"AGENTS.md": "Write plainly.\n"})
    assert "SEEN AGENTS.md Write plainly." in run_writing(cyc, engine, 2, {}, ("AGENTS.md",))


@pytest.mark.parametrize("step", ["cycle-noted", "cycle-branch-noted", "cycle-branch-made"])
def test_f40_dropped_while_a_cycle_is_cut_off(cyc: Workspace, engine: FakeEngine, forks: Forks, step: str) -> None:
    """What the cycle did by itself is there, and asked about once; what was dropped is not."""
    run(cyc, engine, 1, a="a\n")
    card = branch_card(cyc)["id"]
    engine.plan(good("New.", write={"docs/b.md": "b\n"}))
    assert forks.killed_at(cyc.root, ["cycle", str(engine.binary)], step)
    decided = cyc("queue", "answer", card, "drop")
    run(cyc, engine, 3)
    expected = {"docs/b.md": "b\n"}
    assert on_branch(cyc) == expected and branch_card(cyc)["details"]["files"] == list(expected)
    assert decided.code == 0
    take_ok(cyc, "queue", "list")
