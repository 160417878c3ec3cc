"""What a person decides about an agent on its page: disable, enable, roll back."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from harness import Workspace, refused, take_ok
from soft_passkey import SoftPasskey, confirm, is_asked, register_device, sign_in
from web_client import Page, Server, inner_server

PATH = "/agents/probe/decide"


@pytest.fixture
def server(ws: Workspace) -> Iterator[Server]:
    ws.agent("probe", "ctx_log('version 1')")
    with inner_server(ws.root) as server:
        server.sign_in(server.code)
        yield server


def press(server: Server, choice: str, **fields: str) -> Page:
    page = server.get("/agents/probe")
    hidden = {name: page.fields(name)[0] for name in ("token", "digest", "before")} | {"choice": choice} | fields
    return server.follow(server.send("POST", PATH, [*hidden.items()]))


def test_with_an_open_key_an_agent_is_disabled_and_nothing_comes_back(server: Server, ws: Workspace) -> None:
    """What changes what runs asks for a passphrase or a passkey; what stops it does not."""
    page = press(server, "disable", reason="it posts twice")
    assert "probe is disabled" in page.text and "cleared key protect" in page.text
    refused(ws("agent", "run", "probe"), 3, "it posts twice")
    before = ws.head()
    for choice in ("enable", "roll-back"):
        assert f'value="{choice}"' not in page.body
        assert press(server, choice).status == 409 and ws.head() == before
    assert press(server, "approve").status == 404 and ws.head() == before
    ws.ok("agent", "enable", "probe")
    ws.in_order()


def test_each_version_shows_what_it_changed(server: Server, ws: Workspace) -> None:
    """Against the version that counted then, also when later ones have come; nothing of another agent's."""
    for number in (2, 3):
        ws.put("agents/probe.py", ws.read("agents/probe.py").replace(f"version {number - 1}", f"version {number}"))
        ws.ok("agent", "propose", "probe")
        take_ok(ws, "agent", "approve", f"P{number - 1}")
    page = server.get("/agents/probe")
    assert f'href="{server.home}/agents/probe/changes/P1"' in page.body
    change = server.get("/agents/probe/changes/P1")
    assert "-ctx_log('version 1')" in change.text and "+ctx_log('version 2')" in change.text
    assert "version 3" not in change.text and "Back to the agent" in change.text
    for path in ("/agents/probe/changes/P9", "/agents/ingest/changes/P1", "/agents/none/changes/P1"):
        assert server.get(path).status == 404, path


def test_with_a_passkey_it_is_enabled_and_rolled_back(server: Server, ws: Workspace) -> None:
    """Each asks it again."""
    for number in (2, 3):
        ws.put("agents/probe.py", ws.read("agents/probe.py").replace(f"version {number - 1}", f"version {number}"))
        ws.ok("agent", "propose", "probe")
        take_ok(ws, "agent", "approve", f"P{number - 1}")
    device = SoftPasskey()
    passkey = register_device(ws.root, device)
    sign_in(server, device)
    for choice, told in (("disable", "is disabled"), ("enable", "is enabled"), ("roll-back", "counts again")):
        before = ws.head()
        page = press(server, choice, reason="to see")
        assert is_asked(page) and ws.head() == before
        page = confirm(server, device, page, PATH)
        assert told in page.text, page.text
        assert ws.trailers()["Key"] == passkey.key and ws.trailers()["By"] == "Ana"
    assert "version 2" in ws.read("agents/probe.py")
    ws.run("probe")
    ws.in_order()


def test_what_comes_back_is_what_was_shown(server: Server, ws: Workspace) -> None:
    """Between both another version was live, and the same one came again: that other one was shown to nobody here."""

    def approve(version: int, number: int) -> None:
        ws.put("agents/probe.py", re.sub(r"version \d", f"version {version}", ws.read("agents/probe.py")))
        ws.ok("agent", "propose", "probe")
        take_ok(ws, "agent", "approve", f"P{number}")

    approve(2, 1)
    approve(3, 2)
    device = SoftPasskey()
    register_device(ws.root, device)
    sign_in(server, device)
    page = server.get("/agents/probe")
    assert "-ctx_log('version 3')" in page.text and "+ctx_log('version 2')" in page.text
    shown = page.fields("before")[0]
    approve(9, 3)
    approve(3, 4)
    before = ws.head()
    refused_page = press(server, "roll-back", before=shown)
    assert "has changed since it was shown" in refused_page.text and ws.head() == before
    page = press(server, "roll-back")
    assert "counts again" in confirm(server, device, page, PATH).text and "version 9" in ws.read("agents/probe.py")
    ws.in_order()


def test_what_was_prepared_and_not_signed_changes_nothing(server: Server, ws: Workspace) -> None:
    device = SoftPasskey()
    register_device(ws.root, device)
    sign_in(server, device)
    for choice in ("roll-back", "disable"):
        assert is_asked(press(server, choice))
    ws.run("probe")
    ws.in_order()


def test_another_version_than_was_shown_is_not_decided_about(server: Server, ws: Workspace) -> None:
    shown = server.get("/agents/probe").fields("digest")[0]
    ws.agent("probe", "ctx_log('version 3')")
    before = ws.head()
    page = press(server, "disable", digest=shown)
    assert "has changed since it was shown" in page.text and ws.head() == before
