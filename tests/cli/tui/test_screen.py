"""The screen of ``cleared review``, driven by keys on real books."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from harness import CLOCK, Workspace, chase
from patience import PATIENCE

pytest.importorskip("textual")

from rich.cells import cell_len
from textual.pilot import Pilot

from cleared.base.clock import clock_from
from cleared.changes.workspace_opening import open_workspace
from cleared.cli.tui.dialogs import AskAccount, ViewText
from cleared.cli.tui.screen import ReviewApp
from cleared.review.card_actions import ActionExecutor

pytestmark = pytest.mark.slow

FEBRUARY = chase(
    ("02/03/2025", "COFFEE 0231", "-4.80"), ("02/04/2025", "COFFEE 0977", "-5.10"), ("02/05/2025", "PAPER", "-31.00")
)
Play = Callable[["Sitting"], Awaitable[None]]


class Sitting:
    """A screen and somebody at its keys."""

    def __init__(self, app: ReviewApp, pilot: Pilot[None]) -> None:
        self.app, self.pilot = app, pilot

    async def press(self, *keys: str) -> None:
        """Keys; ``type:…`` types a text. Ends when all decisions of it are made."""
        for key in keys:
            if key.startswith("type:"):
                await self.pilot.press(
                    *({" ": "space", "=": "equals_sign", ".": "full_stop", "-": "minus"}.get(c, c) for c in key[5:])
                )
            else:
                await self.pilot.press(key)
            await self.pilot.pause()
        await self.settled()

    async def undo(self) -> None:
        """Take back the last act. Enter counts only once the screen has named it."""
        await self.press("u")
        await self.press("enter")

    async def settled(self) -> None:
        end = time.monotonic() + PATIENCE
        while self.app.unsaved or self.app.progress_messages:
            assert time.monotonic() < end
            await self.pilot.pause(0.01)
        await self.pilot.pause()

    async def until(self, true: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not true():
            assert time.monotonic() < end, self.text
            await self.pilot.pause(0.02)

    @property
    def lines(self) -> list[str]:
        return ["".join(s.text for s in strip) for strip in self.app.screen._compositor.render_strips()]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def current(self) -> str:
        return self.app.rows[self.app.current].text


def sit(ws: Workspace, play: Play, size: tuple[int, int] = (100, 30)) -> ReviewApp:
    """Open the screen, play, close it."""

    async def main() -> ReviewApp:
        messages: list[str] = []
        executor = ActionExecutor(lambda: open_workspace(ws.root, clock=clock_from(CLOCK), say=messages.append))
        app = ReviewApp(executor, messages)
        async with app.run_test(size=size) as pilot:
            sitting = Sitting(app, pilot)
            await sitting.until(lambda: " left" in sitting.text)
            await play(sitting)
            await sitting.settled()
        return app

    return asyncio.run(main())


def statuses(ws: Workspace) -> dict[str, str]:
    return {e["entry_id"]: e["status"] for e in ws.entries()}


def test_the_first_card_is_large_and_the_rest_a_list_at_80_by_24(posted: Workspace) -> None:
    async def play(s: Sitting) -> None:
        lines = s.lines
        assert len(lines) == 24 and all(cell_len(line) == 80 for line in lines)
        for part in (
            "0 done · 2 left",
            "Entry to confirm · 1 of 2",
            "The bank said",
            "january.csv, row 3",
            "1500.00",
            "ingest decided",
            "4010 Service revenue",
            "Not sure at all: no confident match",
            "▸ 2025-01-06",
            "COFFEE",
        ):
            assert part in s.text
        keys = "a approve  c correct  v always  r reject  s skip  u undo  ? help  q quit"
        assert lines[-1].strip() == keys

    sit(posted, play, (80, 24))


def test_a_confirms_and_the_empty_queue_is_calm(posted: Workspace) -> None:
    async def play(s: Sitting) -> None:
        await s.press("a")
        assert s.current == "COFFEE" and "✓ Confirmed: ACME INVOICE 12" in s.text and "1 done · 1 left" in s.text
        await s.press("a")
        assert "Nothing waits for you." in s.text and "2 decisions made here" in s.text
        await s.press("a", "c", "r", "s", "g", "o", "f", "down", "1", "equals_sign")
        await s.press("q")

    app = sit(posted, play)
    assert app.closing_message == "2 decided, 0 left."
    assert {statuses(posted)[i] for i in ("2025-01-002", "2025-01-004")} == {"user-confirmed"}
    assert posted.git("log", "-2", "--format=%s").split("\n")[:2] == [
        "confirm: 2025-01-004 COFFEE",
        "confirm: 2025-01-002 ACME INVOICE 12",
    ]
    posted.in_order()


def test_an_empty_queue_says_so(ws: Workspace) -> None:
    async def play(s: Sitting) -> None:
        assert "Nothing waits for you." in s.text

    sit(ws, play, (80, 24))


def test_c_finds_the_account_by_name_and_keeps_the_note(posted: Workspace) -> None:
    async def play(s: Sitting) -> None:
        await s.press("down", "c", "type:mea")
        assert "▸ 5070  Meals" in s.text
        await s.press("tab", "type:with Ann", "enter")
        assert "✓ Corrected: COFFEE, posted 2025-01-005" in s.text

    sit(posted, play, (80, 24))
    [made] = posted.entries("--status", "user-corrected", "--account", "5070")
    assert made["notes"] == "with Ann" and "user-corrected" in statuses(posted)["2025-01-004"]
    posted.in_order()


def test_c_takes_another_date_vendor_and_tags_too(posted: Workspace) -> None:
    async def play(s: Sitting) -> None:
        await s.press("down", "c", "type:5070", "tab", "type:date=2025-13-01", "enter")
        assert "is not a date" in s.text and isinstance(s.app.screen, AskAccount)
        await s.press("ctrl+u", 'type:date=2025-01-20 vendor="Blue Cup" tags=team,food with Ann', "enter")
        assert "✓ Corrected: COFFEE" in s.text

    sit(posted, play)
    [made] = [e for e in posted.entries("--account", "5070") if e["date"] == "2025-01-20"]
    assert made["counterparty"] == "Blue Cup" and made["notes"] == "with Ann"
    assert {"team", "food"} <= set(made["tags"])
    posted.in_order()


def test_c_takes_a_number_or_the_marked_account_and_escape_nothing(posted: Workspace) -> None:
    async def play(s: Sitting) -> None:
        await s.press("down", "c", "type:507", "escape")
        assert s.current == "COFFEE"
        await s.press("c", "down", "up", "down")
        dialog = s.app.screen
        assert isinstance(dialog, AskAccount)
        wanted = dialog.listed[1].id
        await s.press("enter")
        assert any(str(wanted) in str(e["lines"]) for e in posted.entries("--status", "user-corrected"))
        await s.press("c", "type:4020", "enter")
        assert "✓ Corrected: ACME INVOICE 12" in s.text

    sit(posted, play)
    posted.in_order()


def test_c_splits_once_all_is_placed(posted: Workspace) -> None:
    async def play(s: Sitting) -> None:
        await s.press("down", "c", "type:5070=4.00")
        assert "0.50 is not placed yet" in s.text
        await s.press("enter")
        assert isinstance(s.app.screen, AskAccount), "it is not taken before"
        await s.press("type: 5060=")
        assert "All of it is placed" in s.text
        await s.press("enter")
        assert "✓ Corrected" in s.text

    sit(posted, play)
    assert posted.entries("--account", "5060") and posted.entries("--account", "5070")
    posted.in_order()


def test_v_teaches_the_vendor_with_one_more_key(posted: Workspace) -> None:
    async def play(at: Sitting) -> None:
        await at.press("s", "v", "enter", "type:5070", "enter")
        await at.until(lambda: "Enter approves it" in at.text)
        assert "Always COFFEE → 5070" in at.text and "1 entry would have gone to 5070" in at.text
        await at.press("enter")
        await at.until(lambda: "P1 is live now" in at.text)

    sit(posted, play)
    assert '    ("COFFEE", "Coffee", 5070, 0.99),\n' in posted.read("agents/ingest.py")
    posted.in_order()


def test_r_asks_what_the_bank_line_is_and_why(posted: Workspace) -> None:
    async def play(s: Sitting) -> None:
        await s.press("down", "r")
        assert "It posts a bank line" in s.text
        await s.press("p", "type:my own", "enter")
        assert "✓ Rejected: COFFEE" in s.text
        await s.press("r", "s", "enter")
        assert s.current == "ACME INVOICE 12", "no reason, nothing done"
        await s.press("r", "s", "type:who is that", "enter")
        assert "Bank line on hold" in s.text and "who is that" in s.text
        await s.press("c", "type:4020", "enter")
        assert "✓ Posted: ACME INVOICE 12" in s.text

    sit(posted, play)
    assert posted.entries("--account", "3200")
    posted.in_order()


def test_r_of_a_duplicate_names_the_likely_twin(posted: Workspace) -> None:
    posted.drop("february.csv", chase(("02/03/2025", "COFFEE AGAIN", "-4.50")))
    posted.run("ingest")

    async def play(s: Sitting) -> None:
        await s.press("end", "r", "d")
        assert "2025-01-004" in s.text
        await s.press("enter", "type:came twice", "enter")
        assert "✓ Rejected: COFFEE AGAIN" in s.text

    sit(posted, play)
    assert statuses(posted)["2025-02-001"] == "voided"
    posted.in_order()


def test_s_puts_a_card_to_the_end(posted: Workspace) -> None:
    async def play(s: Sitting) -> None:
        await s.press("s")
        assert [r.text for r in s.app.rows] == ["COFFEE", "ACME INVOICE 12"] and s.current == "COFFEE"
        await s.press("a")
        assert s.current == "ACME INVOICE 12"

    sit(posted, play)


def test_g_shows_what_it_covers_and_decides_it_in_one_commit(posted: Workspace) -> None:
    posted.drop("february.csv", FEBRUARY)
    posted.run("ingest")

    async def play(s: Sitting) -> None:
        await s.press("down")
        assert "g all 3" in s.text
        await s.press("g")
        for part in ("3 × COFFEE", "-14.40", "COFFEE 0231", "COFFEE 0977", "Confirm as it is, all 3"):
            assert part in s.text
        await s.press("c", "type:5070", "enter")
        assert "✓ Corrected: 3 cards" in s.text and "3 done · 2 left" in s.text
        await s.undo()
        assert "0 done · 5 left" in s.text
        assert len([r for r in s.app.rows if r.text.startswith("COFFEE")]) == 3

    sit(posted, play)
    assert posted.git("log", "-2", "--format=%s").split("\n")[1] == "correct: 3 entries"
    posted.in_order()


def test_one_more_key_corrects_the_siblings_the_same_way(posted: Workspace) -> None:
    posted.drop("february.csv", chase(("02/03/2025", "COFFEE", "-4.80"), ("02/04/2025", "COFFEE", "-5.10")))
    posted.run("ingest")

    async def play(s: Sitting) -> None:
        await s.press("down", "c", "type:5070", "enter")
        assert "2 more like it" in s.app.message
        await s.press("equals_sign")
        assert [r.text for r in s.app.rows] == ["ACME INVOICE 12"]
        await s.press("equals_sign")
        assert "nothing to correct the same way" in s.text

    sit(posted, play)
    posted.in_order()


def test_o_opens_the_script_and_f_the_bank_file_at_their_line(posted: Workspace) -> None:
    async def play(s: Sitting) -> None:
        await s.press("down", "f")
        await s.until(lambda: isinstance(s.app.screen, ViewText))
        await s.until(lambda: "▸" in s.text)
        assert "january.csv" in s.text and any("▸" in line and "COFFEE" in line for line in s.lines)
        await s.press("escape", "o")
        await s.until(lambda: isinstance(s.app.screen, ViewText) and "agents/ingest.py" in s.text)
        await s.until(lambda: any("▸" in line and "journal_add_double" in line for line in s.lines))
        await s.press("escape", "question_mark")
        assert "Undo the last act" in s.text
        await s.press("escape")
        assert s.current == "COFFEE"

    sit(posted, play)


def test_u_takes_back_any_number_of_decisions(posted: Workspace) -> None:
    async def play(s: Sitting) -> None:
        await s.press("a", "c", "type:5070", "enter")
        assert not s.app.rows
        await s.press("u")
        assert "it would take back: correct: 2025-01-004 COFFEE" in s.text
        await s.press("escape")
        assert not s.app.rows
        await s.undo()
        assert s.current == "COFFEE" and "✓ Taken back" in s.text
        await s.undo()
        assert s.current == "ACME INVOICE 12" and "0 done · 2 left" in s.text
        await s.press("u")
        assert "! Not done: there is no decision to take back" in s.text

    sit(posted, play)
    assert posted.json("journal", "balance", "5030")[0]["balance"] == "4.50"
    posted.in_order()


def test_a_card_that_somebody_else_has_decided_is_told_and_gone(posted: Workspace) -> None:
    async def play(s: Sitting) -> None:
        await asyncio.to_thread(posted.ok, "queue", "reject", "2025-01-002", "--reason", "no", "--outcome", "personal")
        await s.press("a")
        assert "! Not done" in s.text and "is settled" in s.text
        assert s.current == "COFFEE" and "0 done · 1 left" in s.text
        await asyncio.to_thread(posted.ok, "queue", "approve", "2025-01-004")
        await s.app._poll_head().wait()
        await s.pilot.pause()
        assert "Nothing waits for you." in s.text, "what others decide is taken up"

    sit(posted, play)
    posted.in_order()


def test_a_busy_workspace_is_told_in_a_line_and_the_card_comes_back(posted: Workspace) -> None:
    from cleared.workspace.lock import writer_lock

    posted.config("lock.wait_seconds=0.1")

    async def play(s: Sitting) -> None:
        clock = clock_from(None)
        with writer_lock(posted.root / ".cleared", 1.0, "something long", clock=clock):
            await s.press("a")
            await s.until(lambda: "! Not done" in s.text)
        await s.until(lambda: len(s.app.rows) == 2)
        await s.press("a")
        await s.until(lambda: "✓ Confirmed" in s.text)

    sit(posted, play)


def test_a_proposal_is_shown_in_words_and_approved(posted: Workspace) -> None:
    text = posted.read("agents/ingest.py")
    posted.put("agents/ingest.py", text + "\n# reads the same\n")
    posted.ok("agent", "propose", "ingest", "-m", "a comment")

    async def play(s: Sitting) -> None:
        await s.until(lambda: "Proposal" in s.text and "P1" in s.text)
        await s.press("o")
        await s.until(lambda: isinstance(s.app.screen, ViewText))
        assert "+# reads the same" in s.text
        await s.press("escape", "a")
        assert "✓ P1 is live now" in s.text
        await s.press("u")
        assert "it would take back: agent: P1 approved" in s.text
        await s.press("enter")
        assert "agents/ingest.py is the version before again" in s.app.message, s.app.message

    sit(posted, play)
    assert "reads the same" not in posted.read("agents/ingest.py")
    assert posted.json("agent", "diff", "P1")["id"] == "P1"


def test_a_proposal_is_rejected_with_a_reason(posted: Workspace) -> None:
    text = posted.read("agents/ingest.py")
    posted.put("agents/ingest.py", text + "\n# reads the same\n")
    posted.ok("agent", "propose", "ingest")

    async def play(s: Sitting) -> None:
        await s.press("r", "type:no need", "enter")
        assert "✓ P1 is rejected" in s.text

    sit(posted, play)
    assert len(posted.cards()) == 2


def test_a_failed_run_is_tried_again_with_a_key(posted: Workspace) -> None:
    posted.script("journal_void('2024-01-001', 'x')", code=1)

    async def play(s: Sitting) -> None:
        await s.press("end")
        assert "Failed run" in s.text and "Not done" in s.text
        await s.press("t")
        assert "! Not done: probe failed" in s.text
        await asyncio.to_thread(posted.agent, "probe", "1 + 1")
        await s.press("end", "t")
        assert "✓ probe ran" in s.text
        assert "failed_run" not in [r.kind for r in s.app.rows]

    sit(posted, play)


def test_a_question_shows_its_futures_and_the_run_goes_on_with_the_answer(posted: Workspace) -> None:
    body = """
kind = queue_ask("Is the laptop for business?", ["business", "private"])
account = 5060 if kind == "business" else 3200
journal_add_double(date="2025-01-12", description="LAPTOP " + kind, debit_account=account, credit_account=2010,
                   amount=900.0, confidence=0.9)
"""
    posted.agent("probe", body)
    posted("agent", "run", "probe")

    async def play(s: Sitting) -> None:
        await s.press("end")
        for part in ("Question · 3 of 3", "Is the laptop for business?", "LAPTOP private", "1 business", "2 private"):
            assert part in s.text, s.text
        await s.press("a")
        assert "a does nothing here" in s.text, "a question has no obvious answer"
        await s.press("2")
        assert "✓ Answered “private”" in s.text and "went on" in s.text, s.text

    sit(posted, play)
    assert [e["description"] for e in posted.entries("--account", "3200")] == ["LAPTOP private"]


def test_texts_from_outside_steer_nothing_and_wide_ones_keep_the_frame(ws: Workspace) -> None:
    texts = ["喫茶店 スターバックス 渋谷店 ☕🍰 " * 4, "[bold red]x[/] [@click=app.quit]y[/]", "tab\tand ‮ and \x1b[31m"]
    ws.drop("wide.csv", chase(*((f"01/{10 + n}/2025", t, "-4.50") for n, t in enumerate(texts))))
    ws.run("ingest")

    async def play(s: Sitting) -> None:
        for at, part in enumerate(("喫茶店", "[bold red]x[/] [@click=app.quit]y[/]", "\\u202e")):
            if at:
                await s.press("down")
            assert part in s.text
            assert all(cell_len(line) == 80 for line in s.lines), s.text
            assert "\x1b" not in s.text and "‮" not in s.text

    sit(ws, play, (80, 24))


@pytest.mark.parametrize("size", [(140, 40), (60, 16)])
def test_other_sizes(posted: Workspace, size: tuple[int, int]) -> None:
    async def play(s: Sitting) -> None:
        assert "Entry to confirm" in s.text and all(cell_len(line) == size[0] for line in s.lines)

    sit(posted, play, size)


def test_a_hundred_cards_in_under_a_minute_of_keys(ws: Workspace) -> None:
    rows = [
        (f"01/{1 + n // 4:02}/2025", f"SHOP {chr(65 + n // 26)}{chr(65 + n % 26)}", f"-{n + 1}.00") for n in range(100)
    ]
    ws.drop("many.csv", chase(*rows))
    ws.run("ingest")
    before = int(ws.git("rev-list", "--count", "HEAD"))

    async def play(s: Sitting) -> None:
        assert len(s.app.rows) == 100
        begin = time.process_time()
        for n in range(100):
            keys = ["c", *"5060", "enter"] if n % 25 == 24 else ["a"]
            await s.pilot.press(*keys)
        await s.settled()
        assert time.process_time() - begin < 60
        assert "Nothing waits for you." in s.text and s.app.decided == 100

    sit(ws, play)
    assert int(ws.git("rev-list", "--count", "HEAD")) == before + 100
    ws.in_order()


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_in_a_real_terminal(posted: Workspace, tmp_path: Path) -> None:
    import os
    import subprocess
    import sys

    socket = str(tmp_path / "tmux")
    env = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")} | {"TERM": "xterm-256color"}

    def tmux(*argv: str) -> str:
        done = subprocess.run(["tmux", "-S", socket, *argv], capture_output=True, env=env, check=True, timeout=PATIENCE)
        return done.stdout.decode()

    def until(text: str) -> str:
        end = time.monotonic() + PATIENCE
        while text not in (shown := tmux("capture-pane", "-p")):
            assert time.monotonic() < end, shown
            time.sleep(0.05)
        return shown

    tmux("-u", "-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "sh")
    try:
        tmux("send-keys", f"{sys.executable} -m cleared review -C {posted.root}; echo ended-$?", "Enter")
        until("Entry to confirm · 1 of 2")
        tmux("send-keys", "a")
        until("✓ Confirmed")
        tmux("send-keys", "c5070", "Enter")
        until("Nothing waits for you.")
        tmux("send-keys", "u")
        until("Enter takes it back")
        tmux("send-keys", "Enter")
        until("✓ Taken back")
        tmux("send-keys", "c5060", "Enter")
        until("Nothing waits for you.")
        tmux("send-keys", "u")
        until("Enter takes it back")
        tmux("send-keys", "Enter")
        until("1 done · 1 left")
        until("✓ Taken back: 2025-01-008")
        tmux("send-keys", "q")
        assert "1 decided, 1 left." in until("ended-0")
    finally:
        tmux("kill-server")
    posted.in_order()
