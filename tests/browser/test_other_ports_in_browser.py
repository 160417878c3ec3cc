"""What another program of this machine gets from the browser that is at our page. Row I4.

Each attack is made twice: against the server as it is, and against one without the wall that stops it.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest
from browsing import Visit
from harness import Workspace
from listening import list_loopback, listening
from patience import PATIENCE
from playwright.sync_api import Page, expect
from starlette.responses import Response
from web_client import inner_server

from cleared.web.passkey_invitations import invited
from cleared.workspace import loopback_listener

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from playwright.sync_api import Browser

TELL = "<p id='m'>Signing in…</p><script>fetch('/', {method: 'POST', body: location.hash.slice(1)})</script>"
AGAIN = "<script>if (location.pathname != '/again') location.href = '/again'</script>"
WALLED = pytest.mark.parametrize("is_walled", [True, False], ids=["walled", "without the wall"])


def open_page(browser: Browser) -> Page:
    page = browser.new_context().new_page()
    page.set_default_timeout(PATIENCE * 1000)
    return page


@WALLED
@pytest.mark.skipif("::1" not in list_loopback(), reason="this machine has no IPv6")
def test_i4_no_other_program_gets_a_link(
    posted: Workspace, chromium: Browser, monkeypatch: pytest.MonkeyPatch, is_walled: bool
) -> None:
    """Row I4: a program waits at the other address of ``localhost``, which browsers try first, for the code of a link
    that signs in, and of one that registers a passkey."""
    if not is_walled:
        monkeypatch.setattr(loopback_listener, "_ADDRESSES", ("127.0.0.1",))
    with inner_server(posted.root) as server, invited(posted.root, "Ana") as invitation:
        links = {f"/login#{server.code}": "Today", f"/passkeys/new#{invitation.code}": "Register a passkey"}
        page = open_page(chromium)
        if is_walled:
            with pytest.raises(OSError, match="in use"), listening("::1", lambda path: TELL, server.port):
                pass
            for link, heading in links.items():
                page.goto(f"http://localhost:{server.port}{link}")
                expect(page.get_by_role("heading", name=heading)).to_be_visible()
        else:
            with listening("::1", lambda path: TELL, server.port) as program:
                for link in links:
                    with page.expect_response(lambda response: response.request.method == "POST"):
                        page.goto(f"http://localhost:{server.port}{link}")
            assert program.sent == [server.code, invitation.code]
        page.context.close()


@WALLED
def test_i4_no_page_of_another_port_gets_the_cookie(
    posted: Workspace, chromium: Browser, monkeypatch: pytest.MonkeyPatch, is_walled: bool
) -> None:
    """Row I4: browsers send cookies to every port of a name. Not this one: neither to a page that is opened, nor to one
    that a page of elsewhere leads to and that loads itself again. Nor does a page learn where this one was."""
    if not is_walled:
        set_cookie = Response.set_cookie

        def set_everywhere(self: Response, *args: Any, **options: Any) -> None:
            set_cookie(self, *args, **options | {"path": "/"})

        monkeypatch.setattr(Response, "set_cookie", set_everywhere)
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(inner_server(posted.root))
        program = stack.enter_context(listening("127.0.0.1", lambda path: AGAIN))
        other = f"http://localhost:{program.port}"
        lead = f"<script>location.href = '{other}/led'</script>"
        stranger = stack.enter_context(listening("127.0.0.1", lambda path: lead))  # another site than localhost
        visit = Visit(server, chromium)
        page = visit.open("/queue")
        page.goto(f"{other}/opened")
        page.wait_for_url(f"{other}/again")
        page.goto(f"http://127.0.0.1:{stranger.port}/")
        page.wait_for_url(f"{other}/again")
        visit.go(page, "/queue")
        page.evaluate(f"location.href = '{other}/followed'")
        page.wait_for_url(f"{other}/again")
        visit.go(page, "/queue")
        expect(page.get_by_text("2 cards to decide")).to_be_visible()
        visit.close()
    paths = [path for path, _, _ in program.asked if path != "/favicon.ico"]
    assert paths == ["/opened", "/again", "/led", "/again", "/followed", "/again"]
    assert any(cookies for _, cookies, _ in program.asked) is not is_walled, program.asked
    assert not any(visit.home in referrer or "queue" in referrer for _, _, referrer in program.asked)


def test_an_address_without_the_secret_says_why_it_leads_to_signing_in(posted: Workspace, chromium: Browser) -> None:
    """Such as a bookmark, or one of a session that has ended; the window that signed in goes on."""
    with inner_server(posted.root) as server:
        visit = Visit(server, chromium)
        page = visit.open("/queue")
        bookmark = page.context.new_page()
        for path in ("/queue", "/", "/s/AAAAAAAAAAAAAAAAAAAAAA/queue"):
            bookmark.goto(path)
            assert bookmark.url == f"{server.url}/login"
            expect(bookmark.get_by_text("an address without it, such as a bookmark, cannot know it")).to_be_visible()
        page.reload()
        expect(page.get_by_text("2 cards to decide")).to_be_visible()
        visit.assert_clean()
        visit.close()
