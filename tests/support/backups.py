"""Backups, machines to restore them on, and a workspace that somebody has lived in."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from asking import ASKS
from harness import Done, Workspace, here
from program_client import Program, webhook_agent
from soft_passkey import SoftPasskey, register_device, sign_in
from tasking import Tasks, task
from web_client import inner_server

WORDS = "correct horse battery staple"


def passphrase_file(folder: Path, words: str = WORDS) -> Path:
    path = folder / "words"
    path.write_text(f"{words}\n")
    path.chmod(0o600)
    return path


def back_up(ws: Workspace, name: str = "books.cleared", *options: str) -> Path:
    """A backup beside the workspace."""
    path = ws.root.parent / name
    ws.ok("backup", str(path), "--passphrase-file", str(passphrase_file(ws.root.parent)), *options)
    return path


def restore(file: Path, folder: Path, *options: str, words: str = WORDS) -> Done:
    return here(
        "restore", str(file), str(folder), "--passphrase-file", str(passphrase_file(file.parent, words)), *options
    )


@contextmanager
def other_machine(folder: Path) -> Iterator[Path]:
    """Another user's folders than before, for the length of the block; where his keys lie."""
    folder.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder))
        patch.setenv("XDG_CONFIG_HOME", str(folder))
        yield folder / "cleared"


def all_files(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, links as what they lead to."""
    found = {}
    for top, _, names in os.walk(folder):
        for name in names:
            path = Path(top, name)
            found[str(path.relative_to(folder))] = (
                os.readlink(path).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else b"special"
            )
    return found


class LivedIn:
    """A workspace in which everything was used that writes something beside git's history, and something waits."""

    def __init__(self, ws: Workspace) -> None:
        self.ws = ws
        ws.drop("january.csv")
        ws.run("ingest")
        (question,) = ws.script(ASKS.format(more=""), name="asker")["cards"]
        self.question = str(question["id"])
        self.secret = webhook_agent(ws)
        self.token = str(ws.json("token", "add", "reports")["token"])
        self.device = SoftPasskey()
        self.passkey = register_device(ws.root, self.device)
        with inner_server(ws.root) as server:
            sign_in(server, self.device)
            status, self.call = Program(server, secret=self.secret).hook("msg_1", {"order": 7})
            assert status == 202, self.call
        ws.put("receipts/inbox/photo.pdf", b"%PDF-1.4 nothing")
        self.job = ws.ok("loop", "enqueue", "git_status_summary").out.split()[0]
        Tasks(ws).planned(task(1))
        self._use_git()

    def _use_git(self) -> None:
        """A remote that lacks something, a branch, a stash, something staged, something that is not."""
        ws, remote = self.ws, self.ws.root.parent / "remote.git"
        ws.git("init", "-q", "--bare", str(remote))
        ws.git("remote", "add", "origin", str(remote))
        ws.git("push", "-q", "-u", "origin", "main")
        ws.git("config", "core.fsmonitor", "touch /tmp/cleared-was-here")
        ws.put(".git/hooks/post-commit", "#!/bin/sh\n")
        ws.put("notes.txt", "first\n")
        ws.commit("notes.txt", message="notes")
        ws.git("branch", "draft", "HEAD~1")
        ws.put("notes.txt", "stashed\n")
        ws.git("stash", "-q")
        ws.put("notes.txt", "staged\n")
        ws.git("add", "notes.txt")
        ws.put("notes.txt", "neither staged nor committed\n")
        (ws.root / "shortcut").symlink_to("notes.txt")
