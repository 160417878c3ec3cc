"""What the shipped PROMPT.md asks an engine to do can be done within its wall: ``cleared``, its Python, a terminal."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from fake_engine import GOOD, result
from harness import Workspace, copy_books

from cleared.processes.confinement import landlock_abi
from cleared.processes.namespaces import offered_namespaces
from cleared.trust.keys import RUN_KEY, cleared_home

pytestmark = [pytest.mark.skipif(not landlock_abi(), reason="this kernel has no Landlock"), pytest.mark.slow]

NAMES = ("primitives", "check", "decide", "python", "terminal", "key", "books")
ENGINE = """#!/bin/sh
cat > /dev/null
try() {{ echo "\\$ $*"; "$@" 2>&1 | tail -c 3000; }} >&2
try sh -c 'cleared primitives | grep -c journal_add_double'
try sh -c 'cleared agent check ingest; echo "exit $?"'
try sh -c 'cleared config set loop.ai.cost_cap 9; echo "exit $?"'
try $(dirname $(command -v cleared))/python3 -c 'import sys, cleared, zoneinfo; print("python", sys.version_info[:2])'
try python3 -c 'import os, pty; pid, out = pty.fork(); pid or os.execvp("tty", ["tty"]); print(os.read(out, 99))'
try python3 -c 'open("{key}").read()'
try sh -c 'ls {books}'
cat > memories/consensus.md <<'END'
{consensus}END
cat <<'END'
{result}END
"""


def test_the_shipped_prompt_can_be_followed(starting_point: Path, tmp_path: Path, plain_environment: None) -> None:
    """No folder of programs is named, and nobody has looked at cleared's own."""
    ws = Workspace(copy_books(starting_point, tmp_path / "books"))
    ws.config("loop.ai.enabled=true")
    ws.ok("cycle", "init")
    ws.git("add", "-A")
    ws.git("commit", "-qm", "cycles")
    folder = tmp_path / "home/.claude"
    folder.mkdir(parents=True)
    engine = folder / "engine"
    engine.write_text(
        ENGINE.format(
            key=cleared_home() / RUN_KEY, books=ws.root, consensus=GOOD.format(state="s", action="a"), result=result()
        )
    )
    engine.chmod(0o755)
    ws("cycle", "start", "--engine", "claude", "--allow-ai", "--claude-bin", str(engine), "--max-cycles", "1")
    said = ws.ok("cycle", "last").out
    told = dict(zip(NAMES, re.split(r"^\$ .*\n", said, flags=re.M)[1:], strict=True))
    assert told["primitives"] == "1\n" and told["check"].startswith("ingest: passed\n") and "exit 0" in told["check"]
    assert "cleared trust" in told["decide"] and "exit 3" in told["decide"], "it has a key, which nobody trusts"
    assert told["python"] == f"python {sys.version_info[:2]}\n"
    if offered_namespaces().mounts:
        assert "/dev/pts/" in told["terminal"]
    assert "PermissionError" in told["key"] and "Permission denied" in told["books"], said
