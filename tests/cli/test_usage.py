"""A command line that is wrong is one paragraph and exit code 2, never a traceback."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["nonsense"], "No such command"),
        (["agent", "run"], "Missing argument"),
        (["agent", "run", "ingest", "--nope"], "No such option"),
        (["init", "--entity", "xx", "/nowhere/at/all"], "--entity"),
        (["period", "close", "xx"], "not a period"),
    ],
)
def test_usage(argv: list[str], said: str) -> None:
    done = subprocess.run([sys.executable, "-m", "cleared", *argv], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_text_needs_no_pydantic() -> None:
    """Its import takes longer than all the rest of a command's start; values typer has to check still are."""
    code = (
        "import sys\nfrom cleared.cli.command_runner import run\n"
        "code = run(['agent', 'show', 'nope', '-C', '/'])\n"
        "print(code, 'pydantic' in sys.modules)\n"
        "run(['run', 'list', '--limit', '-3'])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "4 False\n"
    assert "'--limit'" in done.stderr
