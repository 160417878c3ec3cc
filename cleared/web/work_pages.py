"""How far long work is, and what came of it, for whoever waits."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from cleared.web.long_work import Work
from cleared.web.page import PageRequest

QUICK_SECONDS: Final = 2.0
"""What ends within them is answered as if nobody had waited."""


def answer_when_done(page: PageRequest, work: Work) -> Response:
    """What came of it, if that is quick; else the page that says how far it is."""
    if work.has_ended.wait(QUICK_SECONDS):
        return work.answer(page)
    return page.go_to(f"/work/{work.id}")


def show_work(page: PageRequest) -> Response:
    """How far it is, and then what came of it: as a whole page, whose scripts sign and whose address is its own."""
    work = page.site.work.find(page.part("work"))
    if not work.has_ended.is_set():
        return page.render("work.html", work=work)
    if "hx-request" in page.request.headers:
        return Response(headers={"HX-Refresh": "true"})
    return work.answer(page)
