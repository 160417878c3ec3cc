"""A passkey in a real browser: chromium's virtual authenticator is the device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from browsing import Visit, at_both_widths, find_message
from harness import Workspace
from playwright.sync_api import Page, expect
from web_client import inner_server

from bench.page_person import DEVICE
from cleared.changes.decisions.shown_cards import expecting
from cleared.changes.workspace_opening import open_workspace
from cleared.gate.proposals.passkey_registration import SHOWN, register_passkey
from cleared.web.passkey_invitations import invited

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from playwright.sync_api import Browser, CDPSession


def add_device(page: Page) -> tuple[CDPSession, str]:
    """A device that this window can ask, and how to steer it."""
    steering = page.context.new_cdp_session(page)
    steering.send("WebAuthn.enable")
    made = steering.send("WebAuthn.addVirtualAuthenticator", {"options": DEVICE})
    return steering, str(made["authenticatorId"])


@at_both_widths
def test_a_device_is_registered_signs_in_and_signs_what_it_decides(
    posted: Workspace, chromium: Browser, device: dict[str, Any]
) -> None:
    """Nothing is decided while it is asked, nor where it does not make sure who holds it."""
    with inner_server(posted.root) as server:
        visit = Visit(server, chromium)
        page = visit.open("/login", **device)
        page.context.clear_cookies()
        steering, authenticator = add_device(page)
        with invited(posted.root, "Ana") as invitation:
            page.goto(f"/passkeys/new#{invitation.code}")
            page.get_by_role("button", name="Make the passkey").click()
            expect(page.get_by_role("heading", name="The passkey is made")).to_be_visible()
            assert "#" not in page.url
            new = invitation.read_result()
        assert new is not None
        with expecting({SHOWN: new.digest_for("Ana")}):
            passkey = register_passkey(open_workspace(posted.root), "Ana", new)
        without_script = visit.open("/login", java_script_enabled=False)
        without_script.context.clear_cookies()
        without_script.goto("/login")
        expect(without_script.get_by_role("button", name="Sign in with a passkey")).to_be_disabled()
        page.get_by_role("link", name="sign in with it").click()
        page.get_by_role("button", name="Sign in with a passkey").click()
        expect(page.get_by_role("heading", name="Today")).to_be_visible()
        before = posted.head()
        steering.send("WebAuthn.setUserVerified", {"authenticatorId": authenticator, "isUserVerified": False})
        page.goto(page.url + "queue")
        page.get_by_role("button", name="Approve").click()
        expect(page.get_by_text("The passkey did not answer")).to_be_visible()
        assert posted.head() == before
        steering.send("WebAuthn.setUserVerified", {"authenticatorId": authenticator, "isUserVerified": True})
        page.get_by_role("button", name="Sign and decide").click()
        expect(find_message(page, "Confirmed: ACME INVOICE 12")).to_be_visible()
        visit.assert_clean()
        visit.close()
    assert posted.trailers()["Key"] == passkey.key and posted.trailers()["By"] == "Ana"
    posted.in_order()
