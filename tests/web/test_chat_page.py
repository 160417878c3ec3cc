"""Row H16: a session of a language model on the page; what is asked there ends as a card."""

from __future__ import annotations

import http.client
import re
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from fake_provider import Call, FakeProvider, Reply, context_too_long, no_such_model, too_many_requests
from harness import Workspace, take_ok
from patience import PATIENCE
from scripted_model import ANSWERED, COMPLETE, DIGEST, use_provider, write_file
from web_client import Page, Server, inner_server, page_server

pytestmark = pytest.mark.usefixtures("model_key")


@pytest.fixture
def server(ws: Workspace, provider: FakeProvider) -> Iterator[Server]:
    use_provider(ws, provider)
    with inner_server(ws.root) as running:
        running.sign_in(running.code)
        yield running


def wait_for(look: Callable[[], Page], text: str) -> Page:
    """The page, once it says so."""
    until = time.monotonic() + PATIENCE
    while text not in (page := look()).text:
        assert time.monotonic() < until, page.text
        time.sleep(0.05)
    return page


def ask(server: Server, text: str, session: str = "") -> str:
    """Send a request by the form; the address of its session."""
    page = server.get(f"/chat/{session}" if session else "/chat")
    fields = [("token", page.fields("token")[0]), ("session", session), ("text", text), ("way", "send")]
    answer = server.send("POST", "/chat", fields)
    assert answer.status == 303, answer.text
    return answer.headers["location"]


@pytest.mark.parametrize("number", ["9" * 5_000, "٣", "-1", "x"])
def test_a_question_that_is_no_number_is_refused(server: Server, number: str) -> None:
    token = server.get("/chat").fields("token")[0]
    fields = [("token", token), ("text", "every day"), ("way", "send"), ("question", number)]
    answer = server.send("POST", "/chat", fields)
    assert answer.status == 404 and "the form does not say what to do" in answer.text, answer


def test_h16_a_request_on_the_page_ends_as_a_card(server: Server, ws: Workspace, provider: FakeProvider) -> None:
    """Row H16: a request typed there ends as a card; a question back is answered in the same session."""
    markup = "<img src=x onerror=alert(1)>\x1b[31m\u202e"
    hold = threading.Event()
    provider.script(
        Reply(f"Every day, or on weekdays? {markup}"),
        ANSWERED,
        Reply("I write it.", calls=(write_file("agents/digest.py", DIGEST),), hold=hold),
        Reply(calls=(Call("agent_check", {}),)),
        Reply(calls=(Call("propose", {"message": "One note a day."}),)),
        "It is proposed.",
        COMPLETE,
    )
    address = ask(server, f"A digest every morning {markup}")
    session = address.rsplit("/", 1)[1]
    page = wait_for(lambda: server.get(address), "answered")
    assert "Every day, or on weekdays?" in page.text and "<img" not in page.body
    assert not {"\x1b", "\u202e"} & set(page.body)
    assert ask(server, "every day", session) == address
    page = server.get(address)
    assert "working" in page.text and "every day" in page.text and "This page can be left" in page.text
    other = server.get("/chat")
    refusal = server.send("POST", "/chat", [("token", other.fields("token")[0]), ("text", "another"), ("way", "send")])
    assert refusal.status == 409 and "works on another request" in refusal.text and ">another<" in refusal.body
    assert server.get("/queue").status == 200, "the page answers meanwhile"
    hold.set()
    page = wait_for(lambda: server.get(address), "P1 · open")
    assert "Decide in the queue" in page.text and "I write it." in page.text and "writes agents/digest.py" in page.text
    assert "One note a day." in page.text and "USD so far" in page.text and "of 5.00 USD" in page.text
    card = page.body.split("/queue?card=")[1].split('"')[0]
    assert "New agent digest" in server.get(f"/queue?card={card}").text
    assert not (ws.root / "agents/digest.py").exists()
    (told,) = ws.json("meta", "sessions")
    assert (told["author"], told["status"], told["proposal"]) == ("chat", "done", "P1")
    assert session in server.get("/chat").body and provider.left == 0
    again = server.send("POST", "/chat", [("token", page.fields("token")[0]), ("session", session), ("way", "resume")])
    assert "nothing to go on with" in wait_for(lambda: server.follow(again), "nothing to go on with").text


def test_h16_what_the_model_does_is_ended_and_goes_on(server: Server, provider: FakeProvider) -> None:
    """Row H16: cancelled on the page, gone on with on the page."""
    hold = threading.Event()
    provider.script(Reply("late", hold=hold))
    address = ask(server, "how many agents?")
    page = wait_for(lambda: server.get(address), "working")
    fields = [("token", page.fields("token")[0]), ("session", address.rsplit("/", 1)[1])]
    assert server.follow(server.send("POST", "/chat", [*fields, ("way", "cancel")])).status == 200
    page = wait_for(lambda: server.get(address), "interrupted")
    hold.set()
    provider.script("You have three.", ANSWERED)
    assert server.send("POST", "/chat", [*fields, ("way", "resume")]).headers["location"] == address
    assert "You have three." in wait_for(lambda: server.get(address), "answered").text
    done = server.follow(server.send("POST", "/chat", [*fields, ("way", "cancel")]))
    assert "was done already" in done.text


def test_h16_what_ended_a_request_leads_to_its_setting(server: Server, provider: FakeProvider) -> None:
    """What the program says of it is linked, and says what is true; what a model says is text."""
    reply = "Run cleared config set llm.model evil"
    provider.script(reply, ANSWERED, no_such_model())
    page = wait_for(partial(server.get, ask(server, "hello")), "answered")
    assert reply in page.text and "/settings/llm.model" not in page.body
    page = wait_for(partial(server.get, ask(server, "hello")), "failed")
    assert f'href="{server.home}/settings/llm.model"' in page.body and "config set" not in page.text
    provider.script(context_too_long())
    page = wait_for(partial(server.get, ask(server, "hello")), "stopped")
    assert "the provider takes less than the" in page.text and "window has" not in page.text


def test_h16_a_model_that_is_not_reached_is_said_to_be_asked_again(server: Server, provider: FakeProvider) -> None:
    provider.script(too_many_requests(retry_after=50))
    address = ask(server, "how many agents?")
    page = wait_for(lambda: server.get(address), "trying again in 50 s")
    assert "takes no more calls at the moment: slow down" in page.text and "is at work" in page.text
    fields = [("token", page.fields("token")[0]), ("session", address.rsplit("/", 1)[1])]
    server.follow(server.send("POST", "/chat", [*fields, ("way", "cancel")]))
    assert "trying again" not in wait_for(lambda: server.get(address), "interrupted").text


def test_h16_nothing_goes_on_that_its_budget_would_end_at_once(
    server: Server, ws: Workspace, provider: FakeProvider
) -> None:
    """Whichever budget it is; once it is raised, the session goes on."""
    for budget in ("session", "daily"):
        ws.config(f"llm.{budget}_budget=0.0001")
        address = ask(server, "how many agents?")
        page = wait_for(partial(server.get, address), "stopped")
        assert "does not hold another call" in page.text and f"/settings/llm.{budget}_budget" in page.body, page.text
        assert "Go on where it stopped" not in page.text and "<textarea" not in page.body
        ws.config(f"llm.{budget}_budget=9")
        page = wait_for(partial(server.get, address), "Go on where it stopped")
        provider.script("You have three.", ANSWERED)
        fields = [("token", page.fields("token")[0]), ("session", address.rsplit("/", 1)[1])]
        server.send("POST", "/chat", [*fields, ("way", "resume")])
        assert "You have three." in wait_for(partial(server.get, address), "answered").text


def test_h16_without_a_model_the_page_says_what_is_missing(
    server: Server, ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row H16: no key, then no model."""
    monkeypatch.delenv("TEST_MODEL_KEY")
    text = ws.read("config.yaml")
    ws.put("config.yaml", re.sub(r"(?m)^  base_url: .*\n", "", text))
    take_ok(ws, "config", "approve")
    page = server.get("/chat")
    assert page.status == 200 and "there is no key" in page.text and "export TEST_MODEL_KEY" in page.text
    assert "<textarea" not in page.body
    ws.put("config.yaml", text[: text.index("llm:")])
    take_ok(ws, "config", "approve")
    page = server.get("/chat")
    assert "no language model is set up" in page.text and "/settings/llm." in page.body
    for fields, status in ((["way", "no"], 404), (["way", "resume"], 404), (["session", "../x"], 404)):
        sent = [("token", server.get("/").fields("token")[0]), ("text", "x"), (fields[0], fields[1])]
        assert server.send("POST", "/chat", sent).status == status
    assert server.get("/chat/S20250101T000000-0000").status == 404
    empty = [("token", server.get("/").fields("token")[0]), ("text", " "), ("way", "send")]
    assert "request is empty" in server.follow(server.send("POST", "/chat", empty)).text


def test_h16_a_killed_server_leaves_a_session_that_goes_on(ws: Workspace, provider: FakeProvider) -> None:
    """Row H16: SIGKILL in the middle, then ``cleared meta resume``; the page's stream tells each step."""
    use_provider(ws, provider)
    hold = threading.Event()
    provider.script(Reply("never read", hold=hold))
    with page_server(ws) as server:
        wire = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        wire.request(
            "GET", f"{server.home}/live", headers={"Host": f"localhost:{server.port}", "Cookie": server.cookie}
        )
        stream = wire.getresponse()
        assert stream.readline().startswith(b"data: ")
        address = ask(server, "how many agents?")
        while stream.readline() != b"event: step\n":
            pass
        wire.close()
        wait_for(lambda: server.get(address), "working")
        until = time.monotonic() + PATIENCE
        while not provider.requests:
            assert time.monotonic() < until
            time.sleep(0.05)
        server.process.kill()
        server.process.wait()
    hold.set()
    provider.script("You have three.", ANSWERED)
    done = ws.process("meta", "resume")
    assert done.code == 0 and "You have three." in done.out
    assert ws.json("meta", "sessions")[0]["status"] == "answered"
    ws.in_order()
