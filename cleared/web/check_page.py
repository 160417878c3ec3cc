"""Checking all that is recorded, on the page: what is wrong, and what helps."""

from __future__ import annotations

from starlette.responses import Response

from cleared.changes.audit.record_violations import describe_violations
from cleared.domains.installed_domains import describe_number_of_records
from cleared.web.long_work import Finish, Work
from cleared.web.page import PageRequest
from cleared.web.work_pages import answer_when_done


def check_books(page: PageRequest) -> Response:
    """Check every invariant over all records; of large books its page can be left meanwhile."""
    host = page.site.open_host()

    def check(_: Work) -> Finish:
        violations, count = describe_violations(host), describe_number_of_records(host)
        return lambda asking: asking.render("check.html", violations=violations, count=count)

    return answer_when_done(page, page.site.work.begin("Checking all that is recorded", check))
