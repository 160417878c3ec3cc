"""What a shell offers after TAB, as bash asks for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from harness import Done, Workspace, here

Ask = Callable[[str], Done]


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Ask:
    """What bash is given for a line that ends where the cursor is."""

    def complete(line: str) -> Done:
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
        monkeypatch.setenv("_CLEARED_COMPLETE", "complete_bash")
        return here()

    return complete


def test_what_the_workspace_holds_is_offered(posted: Workspace, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    cards = posted.cards()
    proposal = "agents/ingest.py"
    posted.put(
        proposal,
        posted.read(proposal).replace('    ("GITHUB"', '    ("COFFEE", "Coffee", 5070, 0.97),\n    ("GITHUB"', 1),
    )
    posted.ok("agent", "propose", "ingest")
    run = posted.json("run", "list")[0]["run_id"]
    monkeypatch.chdir(posted.root)
    for line, expected in {
        "cleared agent run ": ["ingest", "monthly_summary", "review_reminder"],
        "cleared agent run in": ["ingest"],
        "cleared agent run ingest --again ": [c["id"] for c in posted.cards()],
        "cleared queue approve ": [c["id"] for c in posted.cards()] + [c["entry_id"] for c in cards],
        "cleared agent approve ": ["P1"],
        "cleared agent diff ": ["P1", "ingest", "monthly_summary", "review_reminder"],
        "cleared run show ": [run],
        f"cleared run show {run[:4]}": [run],
        "cleared config get thresholds.two": ["thresholds.two_person"],
        "cleared accounts close 101": ["1010"],
        "cleared journal list --account 5": [
            str(a["account_id"]) for a in posted.json("accounts", "list") if str(a["account_id"])[0] == "5"
        ],
        "cleared wh": ["why"],
        "cleared accounts ": ["list", "add", "rename", "close", "reopen"],
        "cleared loop kin": [],
        "cleared journal balance --as": ["--as-of"],
    }.items():
        done = ask(line)
        assert (done.code, done.err, set(done.out.split())) == (0, "", set(expected)), line


def test_the_workspace_that_is_named_counts(
    ws: Workspace, ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for line in (f"cleared -C {ws.root} agent run ing", f"cleared agent run -C {ws.root} ing"):
        assert ask(line).out.split() == ["ingest"], line


@pytest.mark.parametrize(
    "line",
    ["agent run ", "queue show ", "agent approve ", "run show ", "config get zzz", "accounts close "],
)
def test_outside_a_workspace_nothing_is_offered_and_nothing_said(
    line: str, ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = ask(f"cleared {line}")
    assert (done.code, done.out.strip(), done.err) == (0, "", "")


@pytest.mark.parametrize(
    "file", ["queue/2025-02.jsonl", "accounts/chart-of-accounts.csv", ".cleared/runs.db", "config.yaml"]
)
def test_a_damaged_file_offers_nothing_and_says_nothing(
    file: str, posted: Workspace, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    posted.put(file, b"\xff\x00 no such thing")
    monkeypatch.chdir(posted.root)
    for line in ("queue show ", "accounts close ", "run show ", "agent run zzz"):
        done = ask(f"cleared {line}")
        assert (done.code, done.err) == (0, "") and "Traceback" not in done.out, line
