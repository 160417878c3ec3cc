"""What a person approves on the page is what they were shown: all of it, and nothing beside it is taken back."""

from __future__ import annotations

import pytest
import yaml
from harness import Workspace
from soft_passkey import SoftPasskey, confirm, is_asked, register_device, sign_in
from web_client import Server, inner_server

pytestmark = pytest.mark.slow

WATCHES = '"""\nname: hello\ntrigger: file_watch\nwatch: scans/*.csv\n"""\nctx_log("hello")\n'


def test_what_came_up_since_it_was_shown_is_looked_at_first(ws: Workspace) -> None:
    """A line that holds at this moment is no less shown than what the proposal itself says."""
    device = SoftPasskey()
    register_device(ws.root, device)
    (ws.root / "scans").mkdir()
    ws.put("agents/hello.py", WATCHES)
    ws.ok("agent", "propose", "hello")
    with inner_server(ws.root) as server:
        sign_in(server, device)
        seen = server.get("/queue")
        assert "What will not work yet" in seen.text and "The folder scans/" not in seen.text
        (ws.root / "scans").rmdir()
        before = ws.head()
        for choice, typed in (("approve", ("number", "P1")), ("decline", ("reason", "not now"))):
            page = server.submit(seen, "/queue", ("choice", choice), typed)
            assert "has changed since it was shown" in page.text and ws.head() == before, page.text
        again = server.get("/queue")
        assert "The folder scans/, which hello watches, is not there yet" in again.text
        asked = server.submit(again, "/queue", ("choice", "approve"), ("number", "P1"))
        assert is_asked(asked) and "is live now" in confirm(server, device, asked).text
    ws.in_order()


def propose_setting(server: Server, device: SoftPasskey, number: str, key: str, value: str) -> str:
    """Propose it on its page and approve its card; what is said then."""
    address = f"/settings/{key}"
    card = server.submit(server.get(address), address, ("value", value))
    asked = server.submit(card, "/queue", ("choice", "approve"), ("number", number))
    assert is_asked(asked), asked.text
    return confirm(server, device, asked).text


def test_a_setting_is_approved_beside_an_edit_that_nobody_has(posted: Workspace) -> None:
    """It starts from what is committed. The edit goes on waiting, alone, and approving it takes nothing back; where
    both are about the same lines the edit stays, and that is said."""
    device = SoftPasskey()
    register_device(posted.root, device)
    posted.put("config.yaml", posted.read("config.yaml").replace("auto_confirm: 0.95", "auto_confirm: 0.97"))
    with inner_server(posted.root) as server:
        sign_in(server, device)
        said = propose_setting(server, device, "P1", "self_improvement.enabled", "true")
        assert "is live now" in said and "your edits" not in said
        edited = yaml.safe_load(posted.read("config.yaml"))
        assert edited["self_improvement"]["enabled"] is True and edited["thresholds"]["auto_confirm"] == 0.97
        committed = yaml.safe_load(posted.git("show", "HEAD:config.yaml"))
        assert committed["self_improvement"]["enabled"] is True and committed["thresholds"]["auto_confirm"] == 0.95
        assert server.get("/settings").fields("key") == ["thresholds.auto_confirm"]
        said = propose_setting(server, device, "P2", "thresholds.auto_confirm", "0.99")
        assert "your edits of config.yaml are left as they are" in said
        assert "auto_confirm: 0.97" in posted.read("config.yaml") and "0.99" in server.get("/settings").text
    assert posted.json("check")["ok"]
