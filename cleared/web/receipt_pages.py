"""Receipts: keeping them, saying what each proves, and which payments have none."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from decimal import Decimal
from heapq import nlargest
from pathlib import PurePath
from typing import Final
from urllib.parse import quote

from starlette.responses import Response

from cleared.base import money
from cleared.base.errors import ClearedError, UsageError
from cleared.books.decisions.receipt_filing import link_receipt, remove_receipt, unlink_receipt
from cleared.books.importing.receipt_damage import find_picture_type
from cleared.books.receipt_list import (
    describe_payment,
    find_missing_receipts,
    list_receipts,
    read_payments,
    read_receipt,
    read_receipt_file,
)
from cleared.changes.host import Host
from cleared.web.form_answers import answer_form
from cleared.web.page import PageRequest

_LISTED: Final = 100
_OTHERS: Final = 30
"""Payments that are offered beside the likely ones; a text narrows them."""


def show_receipts(page: PageRequest) -> Response:
    """What is kept and proves nothing yet, what is missing, and the form that takes more."""
    host = page.site.open_host()
    newest, count, total = page.site.recall("missing receipts", _sum_up_missing)
    return page.render(
        "receipts.html",
        loose=list_receipts(host, loose=True)["receipts"][:_LISTED],
        payments=newest,
        more=count - _LISTED,
        total=total,
        currency=host.config.business.currency,
    )


def _sum_up_missing(host: Host) -> tuple[list[dict[str, str]], int, str]:
    """The newest payments that no receipt proves; how many there are, and what they come to."""
    payments = find_missing_receipts(host, Decimal(0))
    newest = nlargest(_LISTED, payments, lambda each: each.day)
    total = money.format_amount(money.total([each.amount for each in payments]))
    return list(map(describe_payment, newest)), len(payments), total


def show_receipt(page: PageRequest, problem: str = "") -> Response:
    """One receipt with its picture, and the payments that it may be of."""
    host, wanted = page.site.open_host(), page.read_value("q")[:100].casefold()
    payments = page.site.recall("payments", read_payments)
    receipt = read_receipt(host, page.part("receipt"), payments, wanted, _OTHERS)
    picture = bool(list_pictures(host, [receipt["sha256"]])) if receipt["is_here"] else False
    return page.render(
        "receipt.html",
        problem=problem,
        receipt=receipt,
        picture=picture,
        asked=page.read_value("entry")[:40],
        others=receipt["others"],
    )


def decide_receipt(page: PageRequest) -> Response:
    """Say which entry it proves, take that back, or keep it no more."""
    host, digest, entry = page.site.open_host(), page.part("receipt"), page.form.get("entry")

    def link() -> str:
        link_receipt(host, digest, entry)
        return f"{entry} has its receipt"

    def unlink() -> str:
        unlink_receipt(host, digest, entry)
        return f"{entry} has not that receipt any more"

    def remove() -> str:
        remove_receipt(host, digest)
        return "The receipt is not kept any more"

    address = f"/receipts/{quote(digest)}"
    acts = {
        "link": (link, f"The receipt is of {entry}", "/receipts"),
        "unlink": (unlink, f"The receipt is not of {entry}", address),
        "remove": (remove, "Remove the receipt", "/receipts"),
    }
    if page.form.get("choice") not in acts:
        raise UsageError("the form does not say what to do", remedy="Load the page again.")
    action, what, back = acts[page.form.get("choice")]
    return answer_form(page, action, show_receipt, what=what, back=back)


def list_pictures(host: Host, digests: Iterable[str]) -> set[str]:
    """Those of these receipts that a browser shows."""
    found = set()
    for digest in digests:
        with suppress(ClearedError):  # a file that is not the one that was kept is told where it is looked at
            found |= {digest} if find_picture_type(read_receipt_file(host, digest)[1]) else set()
    return found


def show_receipt_file(page: PageRequest) -> Response:
    """The file itself: a picture to be looked at, anything else to be saved."""
    name, data = read_receipt_file(page.site.open_host(), page.part("receipt"))
    kind = find_picture_type(data)
    if kind:
        return Response(data, media_type=kind)
    plain = PurePath(name).name.encode("ascii", "replace").decode().replace('"', "_").replace("\\", "_")
    headers = {"Content-Disposition": f'attachment; filename="{plain}"'}
    return Response(data, media_type="application/octet-stream", headers=headers)
