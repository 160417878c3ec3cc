"""``cleared passkey``: a link for one device, what counts, and what counts no more."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Callable

import pytest
from harness import Workspace, refused, unchanged
from listening import take_port
from patience import PATIENCE
from soft_passkey import SoftPasskey, fields_of, options_of, register_device
from web_client import inner_server, page_server

from cleared.cli import passkey as passkey_command
from cleared.trust import trust_store
from cleared.trust.approval_record import WORKSPACE
from cleared.trust.passkey_records import passkey_path
from cleared.web import page_server as server_module


def test_add_prints_a_link_and_waits_for_the_device(ws: Workspace) -> None:
    code, printed, errors = add_passkey(ws, lambda named: named)
    assert code == 0, errors
    (listed,) = ws.json("passkey", "list")
    assert listed["name"] == "Ana B." and listed["key"].startswith("passkey:localhost:")
    assert f'"{listed["id"]}"' in printed
    ws.in_order()


def test_a_passkey_that_nobody_compared_does_not_count(ws: Workspace) -> None:
    """Somebody else may have had the link: in a script, too, the passkey is the one that the person's page names."""
    for say in (lambda named: "", lambda named: "y", lambda named: named[:-1]):
        code, _, errors = add_passkey(ws, say)
        assert code == 3 and "was not confirmed; nothing was registered" in errors, errors
    assert ws.json("passkey", "list") == []


def add_passkey(ws: Workspace, say: Callable[[str], str]) -> tuple[int, str, str]:
    """Exit code and what is printed. ``say``: what the page names → the line that is written to the command."""
    device = SoftPasskey()
    with inner_server(ws.root) as server:
        process = ws.start("passkey", "add", "Ana B.", "--url", server.url + "/", "--json", stdin=subprocess.PIPE)
        try:
            assert process.stderr is not None and process.stdout is not None
            line = process.stderr.readline().decode()
            url, _, code = line.split()[-1].partition("#")
            assert url == f"{server.url}/passkeys/new"
            page = server.send("POST", "/passkeys/new", [("code", code)])
            assert "will sign in Ana B." in page.text
            made = device.create(options_of(page), server.url)
            page = server.send("POST", "/passkeys/new", [*fields_of(page), ("answer", made)])
            assert "The passkey is made" in page.text
            (named,) = set(re.findall(r"\b[0-9a-f]{12}\b", page.text))
            printed, errors = process.communicate(f"{say(named)}\n".encode(), timeout=PATIENCE)
        finally:
            process.kill()
            process.communicate()
    return process.returncode, printed.decode(), errors.decode()


@pytest.mark.parametrize(
    "url", ["http://localhost:{}", "https://127.0.0.1:{}/", "http://[::1]:{}", "http://books.localhost:{}"]
)
def test_no_link_leads_to_a_port_that_no_own_server_has(ws: Workspace, url: str) -> None:
    """Another program waits there, for the link of a passkey that it makes itself."""
    with take_port("127.0.0.1") as taken, unchanged(ws):
        done = ws("passkey", "add", "Ana", "--url", url.format(taken.getsockname()[1]))
        refused(done, 2, "another program could take the link", "cleared server")
        assert "#" not in done.err


def test_a_link_counts_at_the_server_that_it_leads_to_alone(ws: Workspace) -> None:
    """That server was killed, and another program has its port now, and the link: no other server takes it."""
    with page_server(ws, sign_in=False) as killed:
        killed.end(signal.SIGKILL)
    process = ws.start("passkey", "add", "Ana", "--url", killed.url, stdin=subprocess.DEVNULL)
    try:
        assert process.stderr is not None
        code = process.stderr.readline().decode().split("#")[1].strip()
        with inner_server(ws.root) as server:
            page = server.send("POST", "/passkeys/new", [("code", code)])
            assert page.status == 403 and "This link does not count" in page.text
    finally:
        process.kill()
        process.communicate()


def test_list_and_remove(ws: Workspace) -> None:
    assert "No passkey is registered" in ws.ok("passkey", "list").out
    one, two = (register_device(ws.root, SoftPasskey(), name) for name in ("Ana", "Ben"))
    shown = ws.ok("passkey", "list").out
    assert one.id in shown and re.search(r"Ben\s+localhost", shown)
    ws.ok("passkey", "remove", one.id)
    assert [each["id"] for each in ws.json("passkey", "list")] == [two.id]
    with unchanged(ws):
        refused(ws("passkey", "remove", one.id), 2, "no passkey has the id")
        refused(ws("passkey", "remove", ""), 2, "no passkey has the id")


def test_a_removal_that_was_killed_is_completed(ws: Workspace) -> None:
    """It counts no more from before the commit on; the record goes when it is removed again."""
    passkey = register_device(ws.root, SoftPasskey())
    trust = trust_store.load_trust(ws.read(WORKSPACE).strip())
    trust.withdrawn.add(passkey.record)
    trust.save()
    assert ws.json("passkey", "list") == []
    ws.ok("passkey", "remove", passkey.id)
    assert not (ws.root / passkey_path(passkey.key)).exists()
    ws.in_order()


def test_what_cannot_be_registered(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    with unchanged(ws):
        refused(ws("passkey", "add", "\u202eAna"), 2, "cannot be the name of a person")
        refused(ws("passkey", "add", "a" * 61), 2, "cannot be the name of a person")
        monkeypatch.setattr(passkey_command, "list_reviewers", lambda host: {"may_decide": False})
        refused(ws("passkey", "add", "Ana"), 3, "only reviewers may register a passkey")
        monkeypatch.setattr(server_module, "find_spec", lambda name: None)
        refused(ws("passkey", "add", "Ana"), 2, "needs more packages", "pip install '.[web]'")


def test_no_job_registers_or_removes_one(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    passkey = register_device(ws.root, SoftPasskey())
    monkeypatch.setenv("CLEARED_JOB", "night/1")
    with unchanged(ws):
        refused(ws("passkey", "add", "Eve"), 3, "not for a job")
        refused(ws("passkey", "remove", passkey.id), 3, "not for a job")
