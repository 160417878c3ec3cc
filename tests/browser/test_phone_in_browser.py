"""A phone that asks for messages, is told what waits, and comes to the queue by a tap.

No browser here reaches a push service, so two ends are the test's: what ``subscribe`` of the browser answers, and that
the message comes in (by the browser's own tools, to the real worker).
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browsing import PHONE, Visit, find_message
from harness import Workspace
from playwright.sync_api import expect
from push_service import PushService
from running import eventually
from web_client import inner_server

from cleared.base.clock import FixedClock
from cleared.changes.workspace_opening import open_workspace
from cleared.service.notify.phone_messages import PhoneMessages

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from playwright.sync_api import Browser, CDPSession, Page

SUBSCRIBE = """
const GIVEN = %s;
PushManager.prototype.subscribe = async (options) => {
  if (!options.userVisibleOnly || options.applicationServerKey.length !== 65) throw new Error("no key");
  return {toJSON: () => GIVEN};
};
PushManager.prototype.getSubscription = async () => ({...GIVEN, options: {}, unsubscribe: async () => true});
"""
SHOWN = (
    "navigator.serviceWorker.ready.then((it) => it.getNotifications()).then((all) => all.map((n) => [n.title, n.body]))"
)
TAP = """async () => {
  const [notification] = await self.registration.getNotifications();
  self.dispatchEvent(new NotificationEvent("notificationclick", {notification}));
  return (await self.registration.getNotifications()).length; // at once: one delivered twice may come again later
}"""


def deliver(page: Page, steering: CDPSession, text: str, shown: object) -> None:
    """Have the browser take a message in, until it shows that. On a busy machine it may have the worker of the page
    ended just then, and drops the message; a message takes the place of the one before."""
    registrations: list[str] = []
    steering.on(
        "ServiceWorker.workerRegistrationUpdated",
        lambda event: registrations.extend(each["registrationId"] for each in event["registrations"]),
    )
    steering.send("ServiceWorker.enable")
    eventually(lambda: page.wait_for_timeout(20) or registrations)
    origin = "/".join(page.url.split("/")[:3])
    order = {"origin": origin, "registrationId": registrations[0], "data": text}
    eventually(
        lambda: steering.send("ServiceWorker.deliverPushMessage", order) == {} and page.evaluate(SHOWN) == shown,
        pause=0.5,
    )


def test_a_phone_asks_for_messages_and_a_tap_opens_the_queue(
    posted: Workspace, chromium: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = PushService(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(service.pem))
    posted.config(f"notifications.push_hosts=[{service.host}]", "notifications.push=true")
    with inner_server(posted.root) as server:
        visit = Visit(server, chromium)
        page = visit.open("/", **PHONE)
        page.get_by_role("link", name="Messages to your phone").click()
        button = page.get_by_role("button", name="Notify me on this phone")
        button.click()
        expect(page.get_by_text("This phone is not told: you did not allow them")).to_be_visible()
        expect(button).to_be_enabled()
        page.context.grant_permissions(["notifications"])
        page.add_init_script(SUBSCRIBE % service.phone().subscription)
        page.reload()
        page.keyboard.press("?")
        expect(page.get_by_role("dialog").locator("dt")).to_have_text(["?"])
        page.keyboard.press("Escape")
        button.click()
        expect(find_message(page, "once a day at most")).to_be_visible()
        other = PhoneMessages(open_workspace(posted.root)).add_phone(service.phone("ben").subscription, "", "", "")
        page.reload()
        expect(page.locator("[data-phone] b:visible")).to_have_count(1)
        expect(page.locator(f'[data-phone="{other.id}"]').get_by_text("This phone")).to_be_hidden()
        PhoneMessages(open_workspace(posted.root)).remove_phone(other.id, "")
        page.reload()
        page.get_by_role("button", name="Send a test").click()
        expect(find_message(page, "Sent: look at the phone")).to_be_visible()
        morning = datetime.now(UTC) + timedelta(days=1, hours=1)
        PhoneMessages(open_workspace(posted.root, clock=FixedClock(morning))).send_due_messages(morning)
        test, told = service.messages
        assert "test" in test["body"]
        steering = page.context.new_cdp_session(page)
        deliver(page, steering, json.dumps(told), [["Acme", "2 cards wait"]])
        assert page.context.service_workers[0].evaluate(TAP) == 0
        page.wait_for_url(f"{server.url}{visit.home}/queue")
        expect(page.locator("#card")).to_be_visible()
        apple = visit.open("/", user_agent="Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X)")
        apple.add_init_script("delete window.PushManager")
        visit.go(apple, "/phones")
        expect(apple.get_by_text("choose “Add to Home Screen”")).to_be_visible()
        expect(apple.get_by_role("button", name="Notify me on this phone")).to_be_hidden()
        visit.assert_clean()
        visit.close()
    service.close()
