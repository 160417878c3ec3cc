"""``cleared chat``: turn by turn, on a pipe and on a terminal."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_provider import Call, FakeProvider, Reply
from harness import Workspace, refused, unchanged
from patience import PATIENCE
from scripted_model import ANSWERED, COMPLETE, DIGEST, use_provider, write_file
from terminals import run_on_terminal

pytestmark = [pytest.mark.usefixtures("model_key"), pytest.mark.slow]


def test_each_line_of_a_pipe_is_a_message_of_one_session(ws: Workspace, provider: FakeProvider) -> None:
    use_provider(ws, provider)
    provider.script(
        "You have three agents.",
        ANSWERED,
        Reply(calls=(write_file("agents/digest.py", DIGEST),)),
        Reply(calls=(Call("propose", {"message": "x"}),)),
        "Proposed.",
        COMPLETE,
        COMPLETE,
    )
    done = ws.process("chat", stdin=b"how many agents?\n\n/cost\nmake a digest\n/quit\nnever read\n")
    assert done.code == 0, done
    assert done.out.index("You have three agents.") < done.out.index("USD") < done.out.index("P1")
    (session,) = ws.json("meta", "sessions")
    assert session["request"] == "how many agents?" and session["author"] == "chat" and session["proposal"] == "P1"
    assert "how many agents?" in provider.requests[-1].text and "never read" not in provider.requests[-1].text
    assert f"cleared chat --resume {session['id']}" in done.err


def test_new_forgets_and_resume_goes_on(ws: Workspace, provider: FakeProvider) -> None:
    use_provider(ws, provider)
    provider.script("One.", ANSWERED, "Two.", ANSWERED, "Three.", ANSWERED)
    assert ws.process("chat", stdin=b"first words\n/new\nsecond words\n").code == 0
    assert "first words" not in provider.requests[-1].text
    ids = {session["request"]: session["id"] for session in ws.json("meta", "sessions")}
    assert set(ids) == {"first words", "second words"}
    done = ws.process("chat", "--resume", ids["first words"], stdin=b"third words\n")
    assert done.code == 0 and "Three." in done.out
    assert "first words" in provider.requests[-1].text and "second words" not in provider.requests[-1].text


def test_a_failed_message_leaves_its_exit_code(ws: Workspace, provider: FakeProvider) -> None:
    use_provider(ws, provider)
    provider.script(Reply("no", status=401, kind="authentication_error"))
    with unchanged(ws):
        done = ws.process("chat", stdin=b"hello\n")
    assert done.code == 1 and "Traceback" not in done.err
    with unchanged(ws):
        assert ws.process("chat", "--resume", "S1", stdin=b"x\n").code == 2
        assert ws.process("chat", stdin=b"").code == 0


def test_without_a_model_it_says_so_before_the_first_message(ws: Workspace) -> None:
    with unchanged(ws):
        refused(ws("chat"), 4, "no language model is set up", "cleared config set llm.provider")


def test_control_characters_of_a_model_do_not_steer_the_terminal(ws: Workspace, provider: FakeProvider) -> None:
    use_provider(ws, provider)
    provider.script("safe\x1b[2J\x07 text \u202e", ANSWERED)
    done = ws("meta", "hi")
    assert "\x1b" not in done.out and "\u202e" not in done.out and "\\x1b[2J" in done.out


class _Terminal:
    """``cleared chat`` on a terminal of its own."""

    def __init__(self, ws: Workspace) -> None:
        self.process_id, self.fd = pty.fork()
        if self.process_id == 0:
            command = [sys.executable, "-m", "cleared", "-C", str(ws.root), "chat"]
            outside_tests = {k: v for k, v in os.environ.items() if k not in ("CI", "PYTEST_VERSION")}
            os.execvpe(command[0], command, {**outside_tests, "TERM": "xterm"})
        self.text = ""

    def read_until(self, condition: Callable[[str], bool]) -> None:
        until = time.monotonic() + PATIENCE
        while not condition(self.text):
            assert time.monotonic() < until, self.text
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    self.text += os.read(self.fd, 65_536).decode("utf-8", "replace")
                except OSError:
                    assert condition(self.text), self.text
                    return

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def wait(self) -> int:
        try:
            while os.read(self.fd, 65_536):
                pass
        except OSError:
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.process_id, 0)[1])


def test_ctrl_c_ends_the_turn_and_keeps_the_session(ws: Workspace, provider: FakeProvider) -> None:
    use_provider(ws, provider)
    hold = threading.Event()
    provider.script(Reply("late", hold=hold), "After all.", ANSWERED)
    terminal = _Terminal(ws)
    terminal.read_until(lambda text: "> " in text)
    terminal.type("take your time\n")
    until = time.monotonic() + PATIENCE
    while not provider.requests:
        assert time.monotonic() < until
        time.sleep(0.02)
    terminal.type("\x03")
    terminal.read_until(lambda text: text.count("> ") >= 2)
    hold.set()
    terminal.type("go on\n")
    terminal.read_until(lambda text: "After all." in text)
    terminal.read_until(lambda text: text.count("> ") >= 3)
    terminal.type("\x04")
    assert terminal.wait() == 0 and "pydantic" not in terminal.text.lower(), "no banner of a library"
    (session,) = ws.json("meta", "sessions")
    assert session["status"] == "answered" and "take your time" in provider.requests[-1].text


def test_a_proposal_is_seen_and_decided_in_the_chat(ws: Workspace, provider: FakeProvider) -> None:
    """CARD 2: card, code, yes or no on this terminal; asked also where all of it was shown. Rejected with a reason."""
    use_provider(ws, provider)
    for name in ("digest", "other"):
        provider.script(
            Reply(calls=(write_file(f"agents/{name}.py", DIGEST),)),
            Reply(calls=(Call("propose", {"message": name}),)),
            "It waits.",
            COMPLETE,
        )
    answers = [
        ("> ", "/approve"),
        ("this session has proposed nothing", "a digest"),
        ("Cost:", "/card"),
        ("chat: digest", "/diff"),
        ("+waiting = queue_pending()", "/approve"),
        ("Make P1 live?", "n"),
        ("The proposal waits on.", "/approve"),
        ("Make P1 live?", "y"),
        ("Type P1 to approve", "p1"),
        ("P1 is live: agents/digest.py", "another"),
        ("Cost:", "/reject no need of it"),
        ("P2 is rejected", "/quit"),
    ]
    code, shown = run_on_terminal(ws.root, ["chat"], answers)
    assert code == 0 and "P2 is rejected" in shown, shown
    assert ws.read("agents/digest.py") == DIGEST and not (ws.root / "agents/other.py").exists()
    assert "no need of it" in ws.git("log", "-1", "--format=%B") + ws.git("show", "HEAD")


def test_without_a_terminal_the_chat_approves_nothing(ws: Workspace, provider: FakeProvider) -> None:
    use_provider(ws, provider)
    provider.script(
        Reply(calls=(write_file("agents/digest.py", DIGEST),)),
        Reply(calls=(Call("propose", {"message": "x"}),)),
        "It waits.",
        COMPLETE,
    )
    done = ws.process("chat", stdin=b"a digest\n/card\n/diff\n/approve\n")
    assert done.code == 3 and "not shown on a terminal" in done.err and "+waiting = queue_pending()" in done.out, done
    assert not (ws.root / "agents/digest.py").exists()


def test_sigterm_leaves_a_session_that_goes_on(ws: Workspace, provider: FakeProvider) -> None:
    use_provider(ws, provider)
    provider.script(Reply(calls=(write_file("agents/digest.py", DIGEST),)), Reply("x", hold=threading.Event()))
    process = ws.start("meta", "a digest")
    until = time.monotonic() + PATIENCE
    while len(provider.requests) < 2:
        assert time.monotonic() < until
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE)
    provider.script(Reply(calls=(Call("propose", {"message": "x"}),)), "Done.", COMPLETE)
    resumed = ws("meta", "resume")
    assert resumed.code == 0 and "P1" in resumed.out, resumed


def test_a_linked_folder_of_sessions_is_refused(ws: Workspace, provider: FakeProvider, tmp_path: Path) -> None:
    use_provider(ws, provider)
    (tmp_path / "elsewhere").mkdir()
    (ws.root / ".cleared/sessions").symlink_to(tmp_path / "elsewhere")
    for argv in (("meta", "hi"), ("meta", "sessions"), ("meta", "resume")):
        refusal = ws(*argv)
        assert refusal.code == 4 and "symbolic link" in refusal.err, refusal
    assert provider.requests == [] and not list((tmp_path / "elsewhere").iterdir())


def test_without_the_extra_everything_else_works(ws: Workspace, provider: FakeProvider) -> None:
    """One sentence with the command, and no session."""
    use_provider(ws, provider)
    code = (
        "import sys, importlib.util as u; real = u.find_spec\n"
        "u.find_spec = lambda n, *a: None if n.split('.')[0] in ('pydantic_ai', 'anthropic') else real(n, *a)\n"
        "from cleared.cli.command_runner import run; sys.exit(run(sys.argv[1:]))\n"
    )
    argv = [sys.executable, "-c", code, "-C", str(ws.root)]
    done = subprocess.run([*argv, "meta", "hi"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "pip install '.[llm]'" in done.stderr and "Traceback" not in done.stderr
    assert subprocess.run([*argv, "agent", "list"], capture_output=True, check=False).returncode == 0
    assert ws.json("meta", "sessions") == []
