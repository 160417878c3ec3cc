"""Messages to the phone that shows the page: asking for them, trying them, giving them up."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from starlette.responses import Response

from cleared.base.errors import ClearedError, UsageError
from cleared.service.notify.phone_messages import PhoneMessages
from cleared.service.notify.push_sending import find_push_obstacle
from cleared.web.form_answers import refused
from cleared.web.page import PageRequest

_BACK: Final = "/phones"


def show_phones(page: PageRequest, problem: str = "") -> Response:
    """The button that asks for messages, or what is in the way; and the phones that get them."""
    host = page.site.open_host()
    messages = PhoneMessages(host)
    settings = host.config.notifications
    obstacle = find_push_obstacle(settings)
    return page.render(
        "phones.html",
        problem=problem,
        obstacle=obstacle or "",
        public_key="" if obstacle else messages.read_public_key(),
        at=settings.daily_digest_time or "",
        phones=[
            {"id": phone.id, "made": phone.made, "service": urlsplit(phone.endpoint).hostname or ""}
            for phone in messages.list_phones(page.session.passkey)
        ],
    )


def change_phones(page: PageRequest) -> Response:
    """Have this phone told, try one, or tell it nothing more. It decides nothing about the books, and is no commit."""
    messages, way = PhoneMessages(page.site.open_host()), page.form.get("way")
    phone, passkey = page.form.get("phone"), page.session.passkey
    try:
        if way == "add":
            origin = page.request.headers.get("origin", "")
            messages.add_phone(page.form.get("subscription"), passkey, page.site.prefix, origin)
            said = "This phone is told what waits, once a day at most. Try it"
        elif way == "test":
            messages.send_test(phone, passkey)
            said = "Sent: look at the phone"
        elif way == "remove":
            messages.remove_phone(phone, passkey)
            said = "This phone gets no more messages"
        else:
            raise UsageError("the form does not say what is wanted", remedy="Load the page again.")
    except ClearedError as error:
        return refused(show_phones(page, str(error)))
    return page.go_to(_BACK, said)
