"""F42: today's Claude Code and Codex, as PyPI has them, over a night: what is left in the morning is what they did."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from fake_engine import GOOD, wait_until
from fake_provider import Reply
from harness import Workspace, take_ok
from patience import PATIENCE
from real_engines import CODEX_CONFIG, CodexApi, find_engine, play_claude
from running import list_descendants
from tasking import Tasks, task

from cleared.processes.confinement import landlock_abi

pytestmark = pytest.mark.skipif(not landlock_abi(), reason="this kernel has no Landlock")
PENDING = "cleared-cycle/pending"
PIECES = 12
AGENT = '"""\nname: greeter\ndescription: Greets\n"""\n{"said": "hello"}\n'
PIECE = f"""mkdir -p docs
next=$(cat docs/part*.md 2>/dev/null | wc -l)
echo "piece $next" >> docs/part$((next % 3)).md
test $next = 1 && printf '%s' '{AGENT}' > agents/greeter.py
test $next = {PIECES - 1} && action=DONE || action="Write piece $((next + 1))."
printf '{GOOD.format(state="%s pieces are there.", action="%s")}' "$((next + 1))" "$action" > memories/consensus.md
"""
"""What one cycle does: the next piece, as the clone has them, in one of three files; the second makes an agent, too."""


@pytest.fixture
def real(cyc: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """The home of the engines has nothing but what they are told here, and the clock goes on."""
    monkeypatch.delenv("CLEARED_CLOCK", raising=False)
    for name in (".claude", ".codex"):
        (tmp_path / "home" / name).mkdir(parents=True, exist_ok=True)
    (tmp_path / "home/.claude.json").write_text("{}")
    yield cyc


def begin(ws: Workspace, name: str, *more: str) -> Any:
    binary = ("--engine", name, f"--{name}-bin", str(find_engine(name)), "--allow-ai", "--interval", "0")
    return ws.start("cycle", "start", *binary, *more)


def on_branch(ws: Workspace) -> dict[str, str]:
    paths = ws.git("diff", "--name-only", f"{PENDING}^1", PENDING).split()
    return {path: ws.git("show", f"{PENDING}:{path}") for path in paths}


def pieces(files: dict[str, str]) -> list[int]:
    return sorted(int(number) for text in files.values() for number in re.findall(r"piece (\d+)", text))


def test_a_night_of_claude_code(real: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row F42: a limit with its time in the middle, a dropped stream, all killed at midnight, a rejected change."""
    ws, at_midnight, asked = real, threading.Event(), list[str]()
    find_engine("claude")

    def work(text: str) -> str:
        asked.append(text)
        if len(asked) == 8 and not at_midnight.is_set():
            at_midnight.wait(PATIENCE)
        return PIECE

    with play_claude(work) as api:
        usual, limits = api._always, [True]
        assert callable(usual)

        def answer(request: Any) -> Reply:
            if len(asked) == 4 and limits and "tool_result" not in json.dumps(request.body["messages"][-1]):
                limits.clear()
                headers = {
                    "anthropic-ratelimit-unified-status": "rejected",
                    "anthropic-ratelimit-unified-reset": str(int(time.time()) + 3),
                    "anthropic-ratelimit-unified-representative-claim": "five_hour",
                    "x-should-retry": "false",
                }
                return Reply("This exceeds your limit.", status=429, kind="rate_limit_error", headers=headers)
            if len(asked) == 2 and not dropped:
                dropped.append(True)
                return Reply("It breaks off.", cut_after=300)
            return usual(request)

        dropped: list[bool] = []
        api._always = answer
        monkeypatch.setenv("ANTHROPIC_BASE_URL", api.anthropic_url)
        monkeypatch.setenv("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-" + "x" * 40)
        night = begin(ws, "claude")
        wait_until(lambda: len(asked) == 8, night)
        for pid in [night.pid, *list_descendants(night.pid)]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        night.communicate()
        at_midnight.set()
        assert ws("cycle", "status").code == 0
        (proposal,) = [card for card in ws.cards() if card["kind"] == "proposal"]
        take_ok(ws, "agent", "reject", proposal["details"]["proposal"].partition("-")[0], "--reason", "No greeting.")
        morning = begin(ws, "claude")
        said = morning.communicate(timeout=PATIENCE)
    assert morning.returncode == 0, said
    log = (ws.root / "logs/auto-loop-claude.log").read_text()
    assert "usage limit" in log and "its Next Action says that all is done" in log and "Bash: mkdir -p docs" in log
    assert limits == [] and dropped == [True]
    assert pieces(on_branch(ws)) == list(range(PIECES)) and set(on_branch(ws)) == {f"docs/part{n}.md" for n in range(3)}
    assert ws.git("for-each-ref", "--format=%(refname:short)", "refs/heads/cleared-cycle").split() == [PENDING]
    (card,) = [card for card in ws.cards() if card["kind"] in ("branch", "cycle_note")]
    assert [card["kind"] for card in ws.cards()] == ["branch"], "what was rejected is not proposed again"
    assert "do not make it again: agents/greeter.py" in asked[-1]
    assert float(ws.json("cycle", "status")["total_cost"]) > 0
    ws.ok("queue", "answer", card["id"], "merge")
    assert pieces({path.name: path.read_text() for path in ws.root.glob("docs/part*.md")}) == list(range(PIECES))


def test_three_tasks_of_codex(real: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row F42: a stream that drops is connected again; the host verifies; the second is done over with the reason."""
    ws, asked = real, list[str]()
    binary = find_engine("codex")

    def work(text: str) -> str:
        asked.append(text)
        name = _task_of(text)
        wrong = name == "T-002" and not any("Verification failed" in each for each in asked)
        return f"mkdir -p docs; echo {'wrong' if wrong else 'right'} {name} > docs/{name}.txt"

    api = CodexApi(work, drops=1)
    (tmp_path / "home/.codex/config.toml").write_text(CODEX_CONFIG.format(port=api.port))
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-test")
    monkeypatch.setenv("CODEX_BIN", str(binary))
    tasks = Tasks(ws)
    checked = [task(n, verification_command=f"grep -q right docs/T-{n:03d}.txt") for n in (1, 2, 3)]
    tasks.planned(checked[0], {**checked[1], "requires": ["T-001"]}, {**checked[2], "requires": ["T-002"]})
    try:
        done = ws.process("task", "run", "--engine", "codex", "--allow-ai")
        assert done.code == 7, done
        assert tasks.states() == {"T-001": "completed", "T-002": "failed", "T-003": "pending"}
        tasks.ok("retry", "T-002")
        done = ws.process("task", "run", "--engine", "codex", "--allow-ai")
    finally:
        api.close()
    assert done.code == 6 and set(tasks.states().values()) == {"completed"}, done
    assert api.drops_left == 0 and ws.read("docs/T-002.txt") == "right T-002\n"
    ws.ok("check")


def _task_of(text: str) -> str:
    """The task that a briefing is of."""
    match = re.search(r"# (T-00\d)", text)
    assert match is not None, text[:2000]
    return match[1]
