"""One cycle and what it leaves: prompt, consensus, the clone's walls, the gate, the branch (F2–F11, F19, F20, F38)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fake_engine import GOOD, FakeEngine, good, result, start, time_out
from harness import Done, Workspace, take_ok, unchanged
from patience import PATIENCE
from running import has_ended

from cleared.processes.confinement import landlock_abi
from cleared.trust.keys import cleared_home

pytestmark = pytest.mark.slow

CONSENSUS = "memories/consensus.md"


def state(ws: Workspace) -> dict[str, object]:
    found = json.loads(ws.read(".auto-loop-state"))
    assert isinstance(found, dict)
    return found


def last(ws: Workspace) -> dict[str, object]:
    found = state(ws)["last_cycle"]
    assert isinstance(found, dict)
    return found


def test_f2_f5_the_prompt_goes_by_standard_input(cyc: Workspace, engine: FakeEngine) -> None:
    """F2, F5: 300 kB arrive intact and stand in no argument; prompt, guardrails, consensus and number are in it."""
    cyc.put("PROMPT.md", "Improve the books.\n" + "x" * 300_000 + "\nend of prompt\n")
    engine.plan(good())
    assert start(cyc, engine).code == 0
    (call,) = engine.calls
    prompt = call["prompt"]
    assert prompt.startswith("Improve the books.\n") and "end of prompt" in prompt and len(prompt) > 300_000
    assert prompt.index("end of prompt") < prompt.index("## Guardrails") < prompt.index("# Auto Company Consensus")
    assert "This is cycle #1." in prompt and "same Next Action" not in prompt
    assert all(len(argument) < 100 for argument in call["argv"])
    assert cyc.read(CONSENSUS) == GOOD.format(state="Done.", action="Go on.")
    assert last(cyc)["outcome"] == "ok" and state(cyc)["total_cost"] == "0.25"


def test_where_it_works_and_what_it_cannot_touch(cyc: Workspace, engine: FakeEngine, tmp_path: Path) -> None:
    """A private clone without a remote; workspace, keys, .env and the history are out of reach."""
    cyc.put(".env", "KEY=s3cret")
    home = cleared_home()
    engine.plan(
        good(
            write={
                str(cyc.root / "evil.txt"): "x",
                str(cyc.root / "books/evil"): "x",
                str(home / "evil"): "x",
                str(tmp_path / "outside"): "x",
                ".git/config": "[core]\nfsmonitor = false\n",
            },
            read=[str(cyc.root / ".env"), str(home / "approval-key"), ".git/HEAD"],
        )
    )
    assert start(cyc, engine).code == 0
    call = engine.calls[0]
    assert call["cwd"] != str(cyc.root) and "/.cleared/cycles/" in call["cwd"]
    named = {name for name in call["environment"] if name.startswith(("CLEARED", "GIT_DIR"))}
    assert named == {"CLEARED_JOB_FOLDER", "CLEARED_HOME"} and str(home) != call["environment"]["CLEARED_HOME"]
    log = cyc.ok("cycle", "last").out
    if "NOTHING keeps the engine" not in log:
        for path in (cyc.root / "evil.txt", cyc.root / "books/evil", home / "evil", tmp_path / "outside"):
            assert not path.exists(), path
        assert log.count("refused") == 6 and "READ .git/HEAD" in log and "s3cret" not in log
    assert not (cyc.root / ".cleared/cycles/clone").exists()


def test_its_folder_may_lie_elsewhere(cyc: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CLAUDE_CONFIG_DIR names a folder that the engine may write; none that the workspace lies in."""
    elsewhere = FakeEngine(tmp_path / "elsewhere")
    argv = elsewhere.argv()
    elsewhere.plan(good(write={str(cyc.root / "evil"): "x"}))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(elsewhere.folder))
    assert cyc(*argv).code == 0 and last(cyc)["outcome"] == "ok" and len(elsewhere.calls) == 1
    for folder in (cyc.root.parent, cyc.root, Path("elsewhere")):
        monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(folder))
        assert cyc(*argv).code in (0, 1)
        assert landlock_abi() == 0 or (not (cyc.root / "evil").exists() and len(elsewhere.calls) == 1)


def test_f38_what_it_changes_goes_through_the_gate(cyc: Workspace, engine: FakeEngine) -> None:
    """F38: agents become a proposal by a program, other files a branch with a card, the books nothing at all."""
    script = cyc.read("agents/review_reminder.py").replace("Nothing waits for review", "Nothing waits")
    engine.plan(
        good(
            write={
                "agents/review_reminder.py": script,
                "docs/note.md": "a note\n",
                "books/x.csv": "x",
                "queue/forged.jsonl": "{}",
                "agents/approvals/x.json": "{}",
            }
        )
    )
    before = cyc.read("agents/review_reminder.py")
    done = start(cyc, engine)
    assert done.code == 0
    assert cyc.read("agents/review_reminder.py") == before, "never live"
    assert (last(cyc)["proposal"], last(cyc)["branch"]) == ("P1", "cleared-cycle/pending")
    assert not (cyc.root / "docs/note.md").exists() and not (cyc.root / "books/x.csv").exists()
    proposal = json.loads(next((cyc.root / "queue/proposals").glob("P1-*/proposal.json")).read_text())
    assert proposal["author"] == {"name": "cycle:claude", "human": False}
    cards = {card["kind"]: card for card in cyc.cards()}
    assert set(cards) == {"proposal", "branch"}
    assert "books/x.csv" in str(cards["branch"]) and "queue/forged.jsonl" in str(cards["branch"])
    assert cyc.git("show", "--name-only", "--format=%an", "cleared-cycle/pending").split() == [
        "cycle:claude",
        "docs/note.md",
    ]
    cyc.ok("queue", "answer", cards["branch"]["id"], "merge")
    assert cyc.read("docs/note.md") == "a note\n"
    take_ok(cyc, "agent", "approve", "P1")
    assert cyc.read("agents/review_reminder.py") == script
    cyc.ok("check")


def test_a_change_that_fails_the_gate_stays_on_the_branch(cyc: Workspace, engine: FakeEngine) -> None:
    engine.plan(good(write={"agents/ingest.py": "import os\n"}))
    assert start(cyc, engine).code == 0
    (card,) = cyc.cards()
    assert card["kind"] == "cycle_note" and "[import]" in str(card) and last(cyc)["proposal"] is None
    assert cyc.git("show", "cleared-cycle/pending:agents/ingest.py") == "import os\n"
    assert cyc("queue", "answer", card["id"], "merge").code == 2, "what the gate refuses cannot be merged"


def test_a_branch_that_conflicts_says_so(cyc: Workspace, engine: FakeEngine) -> None:
    engine.plan(good(write={"docs/note.md": "theirs\n", "docs/other.md": "x\n"}))
    assert start(cyc, engine).code == 0
    cyc.put("docs/note.md", "ours\n")
    cyc.commit("docs/note.md")
    (card,) = cyc.cards()
    with unchanged(cyc):
        refusal = cyc("queue", "answer", card["id"], "merge")
    assert refusal.code == 3 and "docs/note.md" in refusal.err and "docs/other.md" not in refusal.err


def test_a_forged_card_merges_nothing_else(cyc: Workspace, engine: FakeEngine) -> None:
    """Whoever can push writes cards and branches: what is merged is judged file by file, from the branch itself."""
    engine.plan(good(write={"docs/note.md": "x\n"}))
    assert start(cyc, engine).code == 0
    (card,) = cyc.cards()
    cyc.git("checkout", "-q", "cleared-cycle/pending")
    cyc.put("agents/ingest.py", "evil\n")
    cyc.git("commit", "-qam", "more")
    cyc.git("checkout", "-q", "main")
    refusal = cyc("queue", "answer", card["id"], "merge")
    assert refusal.code == 2 and "another commit" in refusal.err


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "it is empty"),
        ("# Something else\n", "# Auto Company Consensus"),
        ("# Auto Company Consensus\n\n## Company State\n", "## Next Action"),
        ("# Auto Company Consensus\n\n## Next Action\n", "## Company State"),
        (" # Auto Company Consensus\n## Next Action\n## Company State\n", "# Auto Company Consensus"),
        (None, "it is empty"),
    ],
)
def test_f7_f8_f9_an_invalid_consensus_changes_nothing(
    cyc: Workspace, engine: FakeEngine, text: str | None, problem: str
) -> None:
    """F7, F8, F9: each missing heading fails the cycle; the text and its backup keep their bytes."""
    engine.plan(good(), {"write": {CONSENSUS: text, "docs/lost.md": "x"}, "stdout": result()})
    assert start(cyc, engine).code == 0
    before = cyc.read(CONSENSUS)
    assert start(cyc, engine).code == 1
    assert last(cyc)["outcome"] == "failed" and problem in str(last(cyc)["summary"])
    assert cyc.read(CONSENSUS) == before == cyc.read(f"{CONSENSUS}.bak")
    assert state(cyc)["consecutive_errors"] == 1 and cyc.cards() == []


def test_f8_a_trashed_consensus_is_restored(cyc: Workspace, engine: FakeEngine) -> None:
    """F8: whoever trashed it, the last good version is put back before the next cycle, byte for byte."""
    engine.plan(good())
    assert start(cyc, engine).code == 0
    good_text = cyc.read(CONSENSUS)
    engine.plan(good(), {"exit": 1})
    for text in ("trash", "what I began", ""):
        cyc.put(CONSENSUS, text)
        done = start(cyc, engine)
        assert "put back" in done.err and cyc.read(CONSENSUS) == good_text
    kept = {path.name: path.read_text() for path in (cyc.root / "memories").glob("consensus.md.2*.bak")}
    assert sorted(kept.values()) == ["trash", "what I began"], "a person may have begun it"
    notes = [card["details"]["notes"][0] for card in cyc.cards()]
    assert all(any(name in note for note in notes) for name in kept) and len(notes) == 2


def test_f10_an_edit_of_a_person_stays(cyc: Workspace, engine: FakeEngine, tmp_path: Path) -> None:
    """F10: a person edits while the cycle runs; theirs stays, the cycle's lies beside it, with a card."""
    engine.plan(good(state="By the engine.", hang=True))
    loop = cyc.start(*engine.argv())
    wait_for(engine.folder / "hangs")
    cyc.put(CONSENSUS, GOOD.format(state="By a person.", action="Mine."))
    engine.let_go()
    loop.communicate(timeout=PATIENCE)
    assert "By a person." in cyc.read(CONSENSUS)
    assert "By the engine." in cyc.read(f"{CONSENSUS}.cycle-0001")
    assert [card["kind"] for card in cyc.cards()] == ["cycle_note"]
    assert last(cyc)["outcome"] == "ok"


def test_f11_f12_a_timeout(cyc: Workspace, engine: FakeEngine) -> None:
    """F11, F12: with a new consensus it is a soft success, without a failure with 124; nothing lives on, not even a
    grandchild that ignores TERM or has a session of its own."""
    for grandchild in ("child", "detached"):
        (engine.folder / "grandchild").unlink(missing_ok=True)
        engine.plan({"hang": True, "ignore_term": True, "grandchild": grandchild})
        assert time_out(cyc, engine).code == 1
        assert (last(cyc)["outcome"], last(cyc)["exit_code"]) == ("failed", 124)
        assert has_ended(engine.folder / "grandchild")
    engine.plan({"hang": True, "write": {CONSENSUS: GOOD.format(state="s", action="a")}})
    assert time_out(cyc, engine).code == 0
    assert last(cyc)["outcome"] == "soft_ok" and "## Next Action\n\na" in cyc.read(CONSENSUS)


def test_f19_f20_no_progress_and_the_stall_rule(cyc: Workspace, engine: FakeEngine) -> None:
    """F19, F20: no change is counted; the same Next Action twice changes the next prompt, progress does not."""
    engine.plan(
        good(action="One."),
        good("x", action="Two."),
        good("y", action="two."),
        {"stdout": result()},
        good(action="Three."),
    )
    assert start(cyc, engine, "--max-cycles", "5").code == 0
    stalled = ["same Next Action" in call["prompt"] for call in engine.calls]
    assert stalled == [False, False, False, True, True]
    assert "warning" in cyc.read("logs/auto-loop-claude.log") and state(cyc)["no_progress"] == 0


def test_f37_a_headless_question_is_a_failure(cyc: Workspace, engine: FakeEngine) -> None:
    """F37: an engine that asks for permission fails with the cause."""
    engine.plan({"stdout": result(permission_denials=[{"tool_name": "Bash"}])})
    assert start(cyc, engine).code == 1
    assert last(cyc)["outcome"] == "failed" and "asked for permission" in str(last(cyc)["summary"])


def test_f6_f39_nothing_starts_without_prompt_or_leave(cyc: Workspace, engine: FakeEngine) -> None:
    """F6, F39: refused before a pid is written; the settings alone, or the flag alone, are not enough."""
    refusals: list[tuple[Done, int, str]] = []
    refusals.append((cyc("cycle", "start", "--engine", "claude"), 3, "--allow-ai"))
    (cyc.root / "PROMPT.md").rename(cyc.root / "PROMPT.old")
    refusals.append((start(cyc, engine), 4, "PROMPT.md"))
    (cyc.root / "PROMPT.old").rename(cyc.root / "PROMPT.md")
    refusals.append((cyc("cycle", "start", "--engine", "gpt", "--allow-ai"), 2, "codex, qwen"))
    refusals.append(
        (cyc("cycle", "start", "--engine", "claude", "--allow-ai", "--claude-bin", "nowhere"), 4, "npm install")
    )
    cyc.put("tool", "#!/bin/sh\n").chmod(0o755)
    mine = cyc("cycle", "start", "--engine", "claude", "--allow-ai", "--claude-bin", str(cyc.root / "tool"))
    refusals.append((mine, 3, "lies in the workspace"))
    cyc.config("loop.ai.enabled=false")
    refusals.append((start(cyc, engine), 3, "loop.ai.enabled"))
    for done, code, words in refusals:
        assert done.code == code and words in done.err, done
    assert not list(cyc.root.glob(".auto-loop*")) and engine.calls == []


def test_an_unapproved_setting_switches_nothing_on(ws: Workspace, engine: FakeEngine) -> None:
    """Whoever can push writes config.yaml; it is the approved settings that count."""
    ws.ok("cycle", "init")
    ws.put("config.yaml", ws.read("config.yaml") + "\nloop:\n  ai:\n    enabled: true\n")
    ws.commit("config.yaml")
    assert start(ws, engine).code == 3 and engine.calls == []


def wait_for(path: Path) -> None:
    import time

    until = time.monotonic() + PATIENCE
    while not path.exists():
        assert time.monotonic() < until, path
        time.sleep(0.02)
