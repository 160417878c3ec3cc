"""A command line that is wrong is one paragraph and exit code 2, never a traceback."""

import subprocess
import sys

import pytest
from harness import Workspace, here


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["nonsense"], "No such command"),
        (["agent", "run"], "Missing argument"),
        (["agent", "run", "ingest", "--nope"], "No such option"),
        (["init", "--entity", "xx", "/nowhere/at/all"], "--entity"),
        (["period", "close", "xx"], "not a period"),
        (["queue", "correct", "x", "--account", "meals"], "'--account': not a whole number; cleared accounts list"),
        (["run", "list", "--limit", "x"], "'--limit': not a whole number\n"),
        (["queue", "reject", "x", "--outcome", "y"], "'--outcome': 'y' is not one of"),
    ],
)
def test_usage(argv: list[str], said: str) -> None:
    done = subprocess.run([sys.executable, "-m", "cleared", *argv], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_words_that_are_no_text_are_said_as_far_as_they_are(posted: Workspace) -> None:
    """As an old terminal sends them: each of these ended with a traceback, and a reason that was kept so was not the
    one that is attested."""
    words, entry, other = "caf\udce9", *(each["entry_id"] for each in posted.entries()[:2])
    posted.ok("journal", "void", entry, "--reason", words)
    posted.ok("queue", "correct", other, "--account", "5070", "--note", words)
    posted.ok("agent", "disable", "ingest", f"--reason={words}")
    posted.ok("test", "add", posted.json("run", "list")[0]["run_id"], f"-m{words}")
    posted.ok("period", "close", "2024-12", "--reason", words, "--despite", words)
    posted.ok("period", "reopen", "2024-12", "--reason", words)
    posted.put("notes.txt", "x")
    posted.ok("accept", posted.commit("notes.txt"), "--reason", words)
    assert posted.ok("check").code == 0 and "caf?" in posted.git("log", "--format=%s")


def test_the_help_of_a_group_says_which_word_may_be_left_out() -> None:
    assert "cleared import [OPTIONS] FILE" in here("import", "--help").out


def test_the_word_of_a_groups_first_command_may_be_left_out(posted: Workspace) -> None:
    """``cleared import FILE`` beside ``cleared import undo``, options before or after the word."""
    assert posted.json("transfers") == posted.json("transfers", "list")
    done = here("import", "-C", str(posted.root), "--json", "undo", "january.csv")
    assert done.code == 0 and done.json["files"] == ["january.csv"]
    file = posted.root / "import/processed/january.csv"
    assert "goes to  checking" in here("import", "--preview", "-C", str(posted.root), str(file)).out
