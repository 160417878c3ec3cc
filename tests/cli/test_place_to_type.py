"""Remedies name paths of the workspace: said from elsewhere, a command tells where they are to be typed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from harness import Workspace


@pytest.mark.parametrize("words", [("check",), ("status",), ("doctor",), ("queue", "list")])
@pytest.mark.parametrize("inside", [False, True])
def test_what_is_typed_where_the_command_says_works(
    posted: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], inside: bool
) -> None:
    (path,) = (name for name in posted.git("ls-files", "queue").split() if name.endswith(".jsonl"))
    good = posted.git("rev-parse", "--short", "HEAD").strip() if words == ("check",) else "HEAD"
    posted.put(path, posted.read(path) + "{\n")
    posted.git("commit", "-qam", "push")
    monkeypatch.chdir(posted.root / "books" if inside else tmp_path)
    told = posted(*words)
    command = f"git checkout {good} -- {path}"
    assert (command if words != ("doctor",) else "git show ") in told.out + told.err
    [said] = [line for line in told.err.splitlines() if "type it in the workspace" in line]
    typed = said.partition("type it in the workspace: ")[2]
    subprocess.run(["sh", "-c", f"{typed} && {command}"], check=True, capture_output=True)
    monkeypatch.chdir(posted.root)
    assert "type it in" not in posted(*words).err
