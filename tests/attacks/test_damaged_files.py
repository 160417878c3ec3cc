"""Whoever can push damages a file that commands read: each says where, and what it tells one to type brings it back."""

from __future__ import annotations

import subprocess

import pytest
from harness import Workspace, refused

CHART = "accounts/chart-of-accounts.csv"


@pytest.mark.parametrize(
    ("path", "text", "argv"),
    [
        (CHART, "x,y\n", ["accounts", "add", "6001", "New", "--type", "expense"]),
        (CHART, None, ["accounts", "rename", "5020", "New"]),
        ("queue", "{\n", ["queue", "list"]),
    ],
)
def test_what_the_refusal_says_brings_it_back(posted: Workspace, path: str, text: str | None, argv: list[str]) -> None:
    if path == "queue":
        (path,) = (name for name in posted.git("ls-files", "queue").split() if name.endswith(".jsonl"))
    before = posted.read(path)
    (posted.root / path).unlink() if text is None else posted.put(path, before + text if path != CHART else text)
    posted.git("commit", "-qam", "push")
    told = posted(*argv)
    refused(told, 4, path, "git checkout -- ")
    typed = told.err.split("has it so: ", 1)[1].split(", and commit that")[0]
    subprocess.run(["sh", "-c", typed], cwd=posted.root, check=True, capture_output=True)
    assert posted.read(path) == before
    posted.git("commit", "-qam", "brought back")
    posted.ok(*argv)
