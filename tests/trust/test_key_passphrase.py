"""The approval key with a passphrase: typed on a real terminal, taken from nothing else, lost by no crash."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from harness import Workspace, take_ok
from hypothesis import given, settings
from hypothesis import strategies as st
from terminals import run_on_terminal

from cleared.base.errors import WorkspaceError
from cleared.trust import keys, passphrase, sealed_key

GOOD = "correct horse battery"
HEADER = '"""\nname: probe\ntrigger: on_demand\n"""\n'

DYING = {
    "write": "os.fsync = die\n",
    "replace": "Path.replace = die\n",
    "sync_folder": "safe_files.sync_folder = die\n",
}
"""Where the process kills itself → the line that makes it."""


def protect(ws: Workspace, words: str = GOOD) -> None:
    code, shown = run_on_terminal(ws.root, ["key", "protect"], [("New passphrase: ", words), ("again: ", words)])
    assert code == 0, shown
    assert words not in shown


def assert_refused(ws: Workspace, verb: str, why: str) -> None:
    code, shown = run_on_terminal(ws.root, ["key", verb], [])
    assert code == 3 and why in shown, shown


def propose(ws: Workspace, body: str) -> str:
    ws.put("agents/probe.py", f"{HEADER}{body}\n")
    return str(ws.json("agent", "propose", "probe")["id"])


def test_an_approval_asks_on_the_terminal_and_takes_it_from_nothing_else(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """H17: who runs as this user approves only with the passphrase, however else it is handed in."""
    take_ok(ws, "agent", "approve", propose(ws, "1"))
    plain = (keys.cleared_home() / keys.KEY).read_bytes().strip()
    other_name = keys.cleared_home() / "other"
    os.link(keys.cleared_home() / keys.KEY, other_name)
    protect(ws)
    assert keys.is_passphrase_protected()
    assert '"passphrase": true' in run_on_terminal(ws.root, ["key", "status", "--json"], [])[1]
    assert (keys.cleared_home() / keys.KEY).stat().st_mode & 0o777 == 0o600
    for path in keys.cleared_home().rglob("*"):
        assert path.is_dir() or plain not in path.read_bytes(), path
    other_name.unlink()
    ws.ok("agent", "run", "probe")
    second = propose(ws, "2")
    monkeypatch.setenv("CLEARED_PASSPHRASE", GOOD)
    piped = subprocess.run(
        [sys.executable, "-m", "cleared", "agent", "approve", second],
        cwd=ws.root,
        input=f"{GOOD}\n" * 3,
        capture_output=True,
        text=True,
        start_new_session=True,
    )
    assert piped.returncode == 3 and "no terminal" in piped.stderr, piped.stderr
    code, shown = run_on_terminal(
        ws.root,
        ["agent", "approve", second],
        [
            ("live? [y/N]: ", "y"),
            ("Type P2", "P2"),
            ("approval key: ", "wrong one"),
            ("Wrong. Passphrase of the approval key: ", GOOD),
        ],
    )
    assert code == 0, shown
    ws.ok("agent", "run", "probe")
    code, shown = run_on_terminal(ws.root, ["agent", "rollback", "probe"], [("approval key: ", GOOD)])
    assert code == 0, shown


def test_three_wrong_tries_are_refused_with_what_to_do(ws: Workspace) -> None:
    protect(ws)
    wrong = [("live? [y/N]: ", "y"), ("Type P1", "P1"), *[("approval key: ", "no")] * 3]
    code, shown = run_on_terminal(ws.root, ["agent", "approve", propose(ws, "1")], wrong)
    assert code == 3 and "not the passphrase" in shown and "cleared trust" in shown, shown


def test_it_is_changed_and_taken_away_with_the_old_one_only(ws: Workspace) -> None:
    public = keys.own_key(ws.root, create=True)
    assert public is not None
    protect(ws)
    assert_refused(ws, "protect", "has a passphrase already")
    code, shown = run_on_terminal(ws.root, ["key", "unprotect"], [("approval key: ", "not the one")])
    assert code == 3 and keys.is_passphrase_protected(), shown
    new = "other words entirely"
    typed = [("approval key: ", GOOD), ("New passphrase: ", new), ("again: ", new)]
    code, shown = run_on_terminal(ws.root, ["key", "change"], typed)
    assert code == 0, shown
    code, shown = run_on_terminal(ws.root, ["key", "unprotect"], [("approval key: ", new)])
    assert code == 0 and not keys.is_passphrase_protected(), shown
    own = keys.own_key(ws.root)
    assert own is not None and own.public == public.public
    assert_refused(ws, "unprotect", "has no passphrase")
    assert_refused(ws, "change", "has no passphrase")


def test_a_damaged_file_is_told_from_a_wrong_passphrase() -> None:
    secret = keys.new_secret()
    data = sealed_key.seal_key(secret, keys.public_half(secret), GOOD)
    with pytest.raises(sealed_key.WrongPassphrase):
        sealed_key.open_sealed_key(data, "another", "key")
    for damaged in (data[:-9], data.replace(b'"n": 65536', b'"n": 1073741824'), data.replace(b"ed25519:", b"ed25518:")):
        with pytest.raises(WorkspaceError, match="damaged"):
            sealed_key.open_sealed_key(damaged, GOOD, "key")
    with pytest.raises(WorkspaceError, match="newer version"):
        sealed_key.open_sealed_key(data.replace(b'"version": 1', b'"version": 2'), GOOD, "key")


@settings(max_examples=5, deadline=None)
@given(st.binary(min_size=32, max_size=32), st.text(min_size=1, max_size=40))
def test_what_is_sealed_is_opened_by_its_passphrase(secret: bytes, words: str) -> None:
    data = sealed_key.seal_key(secret, keys.public_half(secret), words)
    assert secret not in data and sealed_key.is_sealed(data)
    assert sealed_key.open_sealed_key(data, words, "key") == secret


def test_it_is_remembered_for_some_minutes_in_this_process_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    passphrase.remember_secret(b"file", b"secret")
    assert passphrase.recall_secret(b"file") == b"secret"
    child = os.fork()
    if child == 0:
        os._exit(0 if passphrase.recall_secret(b"file") is None else 1)
    assert os.waitpid(child, 0)[1] == 0
    later = time.monotonic() + passphrase.REMEMBER_SECONDS + 1
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert passphrase.recall_secret(b"file") is None


@pytest.mark.parametrize("before", ["write", "replace", "sync_folder"])
def test_killed_while_it_is_protected_the_old_or_the_new_file_is_there(ws: Workspace, before: str) -> None:
    own = keys.own_key(ws.root, create=True)
    assert own is not None
    kill = (
        "import os, signal\nfrom pathlib import Path\nfrom cleared.base import safe_files\n"
        "from cleared.trust import passphrase, key_protection\n"
        "def die(*a): os.kill(os.getpid(), signal.SIGKILL)\n"
        + DYING[before]
        + f"with passphrase.asking_with(lambda prompt: {GOOD!r}):\n    key_protection.protect_key()\n"
    )
    done = subprocess.run([sys.executable, "-c", kill], cwd=ws.root, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    again = keys.own_key(ws.root)
    assert again is not None and again.public == own.public
    assert keys.is_passphrase_protected() is (before == "sync_folder")
    with passphrase.asking_with(lambda prompt: GOOD):
        again.unlock()
    assert keys.verify_signature(own.public, again.sign(b"text"), b"text")
    passphrase.forget_secrets()
