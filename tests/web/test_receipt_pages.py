"""Receipts on the page: kept at once, linked with a tap, shown beside the bank line; what is damaged is refused."""

from __future__ import annotations

import hashlib
import re

import pytest
from harness import Workspace
from receipt_files import JPEG, make_pdf, make_png
from web_client import Page, Server, inner_server

pytestmark = pytest.mark.slow

RECEIPT = ("way", "receipt")
THUMB = b"\xff\xd8\xff\xe1\x00\x1b" + JPEG[:-4] + b"\xff\xd9"
"""The beginning of a picture: the whole of a small one lies in it."""


def press(server: Server, page: Page, address: str, choice: str, entry: str = "") -> Page:
    fields = [("token", page.fields("token")[0]), ("choice", choice), ("entry", entry)]
    return server.follow(server.send("POST", address, fields))


def test_a_picture_is_kept_at_once_and_linked_with_a_tap(posted: Workspace) -> None:
    [aws] = [entry["entry_id"] for entry in posted.entries() if entry["amount"] == "45.10"]
    with inner_server(posted.root) as server:
        server.sign_in(server.code)
        assert aws in server.get("/receipts").body and "Together 53.60 USD" in server.get("/receipts").text
        page = server.upload(server.get("/receipts"), {"2025-01-10 45.10.png": make_png()}, RECEIPT)
        digest = hashlib.sha256(make_png()).hexdigest()
        assert "1 receipt kept" in page.text and "Is it of this payment?" in page.text and "Amazon" in page.text
        card = server.get(f"/queue?card={next(c['id'] for c in posted.cards() if c['kind'] == 'receipt')}")
        assert f"/receipts/{digest}/file" in card.body, "the picture stands on its card"
        page = press(server, page, f"/receipts/{digest}", "link", aws)
        assert f"{aws} has its receipt" in page.text and aws not in page.body.partition("without a receipt")[2]
        assert [card for card in posted.cards() if card["kind"] == "receipt"] == []
        why = server.get(f"/books/entries/{aws}")
        assert f"/receipts/{digest}/file" in why.body and "The bank said" in why.text
        receipt = server.get(f"/receipts/{digest}")
        assert "It proves" in receipt.text and "Amazon" in receipt.text and "by the page." in receipt.text
        before = posted.head()
        again = server.upload(server.get("/receipts"), {"again.png": make_png()}, RECEIPT)
        assert "again.png is kept already" in again.text and "It proves" in again.text and posted.head() == before
        page = press(server, receipt, f"/receipts/{digest}", "unlink", aws)
        assert "has not that receipt any more" in page.text
        refused = press(server, page, f"/receipts/{digest}", "link", "2031-01-001")
        assert refused.status == 409 and "there is no entry" in refused.text
        assert "not kept any more" in press(server, page, f"/receipts/{digest}", "remove").text
        assert server.get(f"/receipts/{digest}").status == 404
    posted.in_order()


def test_a_picture_that_is_handed_in_twice_is_kept_once(posted: Workspace) -> None:
    with inner_server(posted.root) as server:
        server.sign_in(server.code)
        page = server.upload(server.get("/receipts"), {"a.png": make_png(), "b.png": make_png()}, RECEIPT)
        assert "1 receipt kept" in page.text and f"/receipts/{hashlib.sha256(make_png()).hexdigest()}" in page.body
    posted.in_order()


def test_a_receipt_is_attached_on_the_page_of_an_entry(posted: Workspace) -> None:
    [coffee] = [entry["entry_id"] for entry in posted.entries() if entry["amount"] == "4.50"]
    with inner_server(posted.root) as server:
        server.sign_in(server.code)
        entry = server.get(f"/books/entries/{coffee}")
        assert "Attach a receipt" in entry.text and 'capture="environment"' in entry.body
        page = server.upload(entry, {"paper.pdf": make_pdf("Thank you")}, RECEIPT, ("entry", coffee))
        assert f"It is the receipt of {coffee}" in page.text and "Save the file" in page.text
        (digest,) = set(re.findall(r'action="[^"]*/receipts/(\w{64})"', page.body))
        assert f"{coffee} has its receipt" in press(server, page, f"/receipts/{digest}", "link", coffee).text
        found = server.get(f"/receipts/{digest}?q=amazon")
        assert "Amazon" in found.text and "GitHub" not in found.text
    posted.in_order()


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("empty.pdf", b"", "the file is empty"),
        ("cut.pdf", make_pdf("Total 45.10")[:200], "no whole PDF"),
        ("cut.png", make_png()[:60], "no whole PNG picture"),
        ("page.jpg", b"<html>not found</html>", "no whole JPEG picture"),
        ("thumb.jpg", THUMB + JPEG[20:-2], "no whole JPEG picture"),
        ("cut.webp", b"RIFF\xff\x00\x00\x00WEBPVP8 ", "no whole WebP picture"),
    ],
)
def test_what_is_empty_or_damaged_is_refused(posted: Workspace, name: str, data: bytes, why: str) -> None:
    """On the page at once, and so by the command: nothing of it is kept."""
    with inner_server(posted.root) as server:
        server.sign_in(server.code)
        head = posted.head()
        page = server.upload(server.get("/receipts"), {name: data}, RECEIPT)
        assert f"{name} was not kept" in page.text and why in page.text and posted.head() == head
        assert "Take a picture" in page.text and "Bank files and receipts" not in page.text, "the form comes again"
    posted.put(f"receipts/inbox/{name}", data)
    done = posted("receipt", "add")
    assert done.code == 1 and why in done.err and posted.head() == head


def test_no_file_of_a_receipt_is_a_page(posted: Workspace) -> None:
    """Only pictures are shown; anything else is saved, whatever it is called, and none of it is a script here."""
    html = b"<script>alert(1)</script>"
    with inner_server(posted.root) as server:
        server.sign_in(server.code)
        server.upload(server.get("/receipts"), {'bill".html': html, "photo.jpg": JPEG}, RECEIPT)
        page, picture = (server.get(f"/receipts/{hashlib.sha256(data).hexdigest()}/file") for data in (html, b"none"))
        assert page.headers["content-type"] == "application/octet-stream" and picture.status == 404
        assert page.headers["content-disposition"].startswith("attachment") and page.body.encode() == html
        assert "default-src 'none'" in page.headers["content-security-policy"]
        (posted.root / "receipts").chmod(0o700)
        file = next((posted.root / "receipts").glob("*/*.jpg"))
        file.write_bytes(JPEG + b"changed")
        name = hashlib.sha256(JPEG).hexdigest()
        assert server.get(f"/receipts/{name}/file").status == 409 and server.get(f"/receipts/{name}").status == 200


def test_what_is_too_large_is_refused_and_a_film_behind_a_picture_is_not(posted: Workspace) -> None:
    with inner_server(posted.root) as server:
        server.sign_in(server.code)
        large = JPEG + b"\0" * (10 << 20)
        page = server.upload(server.get("/receipts"), {"large.jpg": large}, RECEIPT)
        assert "large.jpg was not kept: it is larger than" in page.text
        assert not list((posted.root / "receipts/inbox").glob("*"))
        page = server.upload(server.get("/receipts"), {"moving.jpg": JPEG + b"ftypmp42" * 9_000}, RECEIPT)
        assert "1 receipt kept" in page.text
