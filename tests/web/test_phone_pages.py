"""Messages to a phone, from the page: what is in the way, asking for them, trying them, giving them up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import Workspace, take_ok
from push_service import PushService
from soft_passkey import SoftPasskey, register_device, sign_in
from web_client import Page, Server, inner_server

from cleared.service.notify import push_sending


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PushService]:
    found = PushService(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(found.pem))
    yield found
    found.close()


@pytest.fixture
def server(posted: Workspace, service: PushService) -> Iterator[Server]:
    posted.config(f"notifications.push_hosts=[{service.host}]", "notifications.push=true")
    with inner_server(posted.root) as server:
        server.sign_in(server.code)
        yield server


def press(server: Server, way: str, *fields: tuple[str, str]) -> Page:
    return server.submit(server.get("/phones"), "/phones", ("way", way), *fields)


def test_the_page_says_what_is_missing_and_leads_there(
    posted: Workspace, service: PushService, monkeypatch: pytest.MonkeyPatch
) -> None:
    with inner_server(posted.root) as server:
        server.sign_in(server.code)
        assert "Messages to your phone" in server.get("/").text
        page = server.get("/phones")
        assert "messages to phones are off" in page.text and "Notify me on this phone" not in page.text
        assert f'href="{server.home}/settings/notifications.push"' in page.body
        assert "are off: Settings ." in page.text, "the link stands for the whole command"
        refused = server.submit(
            server.get("/"), "/phones", ("way", "add"), ("subscription", service.phone().subscription)
        )
        assert refused.status == 409 and "messages to phones are off" in refused.text
        posted.config("notifications.push=true")
        with monkeypatch.context() as patched:
            patched.setattr(push_sending, "_PACKAGES", ("no_such_package",))
            page = server.get("/phones")
            assert "pip install '.[web]'" in page.text and "Notify me on this phone" not in page.text
        text = posted.read("config.yaml").replace("  push: true", "  push: true\n  daily_digest_time: null")
        posted.put("config.yaml", text)
        take_ok(posted, "config", "approve")
        assert "no time is set for them" in server.get("/phones").text


def test_a_phone_asks_tries_it_and_gives_it_up(server: Server, service: PushService) -> None:
    page = press(server, "add", ("subscription", service.phone().subscription))
    assert "once a day at most" in page.text and "By localhost, since" in page.text
    (phone,) = page.fields("phone")
    assert "Sent: look at the phone" in press(server, "test", ("phone", phone)).text
    assert service.messages == [{"title": "Acme", "body": "This is a test: messages come through.", "place": ""}]
    assert service.claims()[0]["sub"] == "https://localhost"
    service.answers["/push/ana"] = 500
    refused = press(server, "test", ("phone", phone))
    assert refused.status == 409 and "was not taken: localhost: 500" in refused.text
    assert "no more messages" in press(server, "remove", ("phone", phone)).text
    assert press(server, "test", ("phone", phone)).status == 409
    press(server, "add", ("subscription", service.phone().subscription))
    service.answers["/push/ana"] = 410
    gone = press(server, "test", ("phone", phone))
    assert "takes no messages any more" in gone.text and not gone.fields("phone")


def test_nobody_adds_or_removes_a_phone_for_somebody_else(
    server: Server, posted: Workspace, service: PushService
) -> None:
    press(server, "add", ("subscription", service.phone().subscription))
    (phone,) = server.get("/phones").fields("phone")
    device = SoftPasskey()
    register_device(posted.root, device, "Ben")
    forged = [("token", "x"), ("way", "add"), ("subscription", service.phone("ben").subscription)]
    assert server.send("POST", "/phones", forged).status == 409
    owner = server.cookie, server.home
    sign_in(server, device)
    page = server.get("/phones")
    assert "Phones that are told" not in page.text
    for way in ("test", "remove"):
        refused = press(server, way, ("phone", phone))
        assert refused.status == 409 and "this phone gets no messages" in refused.text
    press(server, "add", ("subscription", service.phone("ben").subscription))
    assert press(server, "nonsense").status == 409
    server.cookie, server.home = owner
    assert server.get("/phones").fields("phone") == [phone], "not Ben's"


def test_a_message_leads_to_the_queue_through_signing_in_and_nowhere_else(server: Server) -> None:
    page = server.get("/login?to=/queue")
    assert page.fields("to") == ["/queue"]
    from_link = server.send("POST", "/login", [("code", "wrong"), ("to", "/queue")])
    assert from_link.fields("to") == ["/queue"], "a wrong code keeps the way"
    for other in ("//evil.example", "https://evil.example", "/settings", "/queue/../x", "/w/a/b/queue"):
        assert server.get(f"/login?to={other}").fields("to") == [""]


def test_signing_in_goes_on_to_the_queue(posted: Workspace, service: PushService) -> None:
    with inner_server(posted.root) as server:
        signed = server.send("POST", "/login", [("code", server.code), ("to", "/queue")])
        assert signed.status == 303 and signed.headers["location"].endswith("/queue")
