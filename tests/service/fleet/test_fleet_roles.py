"""Who may do what on the page of a fleet: owners approve, bookkeepers decide, readers look; others see nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from fleets import FleetOfOne
from harness import CLOCK, chase, take_ok
from soft_passkey import SoftPasskey, confirm, register_device, sign_in
from synced import tip_of
from web_client import Server

from cleared.trust.passkey_records import Passkey

pytestmark = pytest.mark.slow

QUEUE = "/w/acme/queue"


def name_people(fleet: FleetOfOne, ana: Passkey, ben: Passkey) -> None:
    """Ana owns the fleet, and has a phone; Ben keeps the books."""
    desk = fleet.desk
    named = (("Ana", desk.json("queue", "reviewers")["key"]), ("Ana", ana.key), ("Ben", ben.key))
    rules = "".join(f"  - {{name: {name}, key: {key!r}}}\n" for name, key in named)
    desk.put("config.yaml", f"{desk.read('config.yaml').rstrip()}\nreviewers:\n{rules}bookkeepers: [Ben]\n")
    take_ok(desk, "config", "approve")


def press(server: Server, device: SoftPasskey, *fields: tuple[str, str]) -> str:
    """What comes of a decision about the first card of the queue, or the one that is named."""
    card = next((value for name, value in fields if name == "card"), "")
    page = server.get(f"{QUEUE}?card={card}" if card else QUEUE)
    page = server.submit(page, QUEUE, *(each for each in fields if each[0] != "card"))
    return confirm(server, device, page, QUEUE).text


def test_each_sees_and_does_what_their_role_in_a_workspace_is(fleet: FleetOfOne, tmp_path: Path) -> None:
    fleet.add_other("beta")
    (tmp_path / "shop.csv").write_text(chase(("02/05/2025", "CORNER SHOP", "-5.00")))
    fleet.owner.ok("drop", "acme", str(tmp_path / "shop.csv"))
    fleet.work("one", CLOCK)
    desk, beta = fleet.desk, fleet.desk_of("beta")
    desk.ok("sync", "origin")
    ana, ben, rita, eve = (SoftPasskey(counts=False) for _ in range(4))
    of_ana, of_ben = register_device(desk.root, ana, "Ana"), register_device(desk.root, ben, "Ben")
    register_device(desk.root, rita, "Rita")
    register_device(beta.root, eve, "Eve")
    assert beta.json("passkey", "add", "Ana", "--like", str(desk.root))["key"] == of_ana.key
    again = beta("passkey", "add", "Ana", "--like", str(desk.root))
    assert again.code == 2 and "no passkey" in again.err
    name_people(fleet, of_ana, of_ben)
    desk.put("agents/hello.py", '"""\nname: hello\n"""\nctx_log("hello")\n')
    desk.ok("agent", "propose", "hello")
    cards = {card["kind"]: str(card["id"]) for card in desk.cards()}
    for each in (desk, beta):
        each.ok("sync", "origin")
    with fleet.serving() as server:
        sign_in(server, rita)
        listed = server.get("/").text
        assert "acme · " in listed and "reader" in listed and "beta" not in listed
        before = desk.head()
        refused = press(server, rita, ("card", cards["entry"]), ("choice", "confirm"))
        assert "you may look at these books" in refused and desk.head() == before
        assert server.send("POST", "/w/acme/agents/ingest", [("token", "none")]).status in (403, 409)

        sign_in(server, eve)
        listed = server.get("/").text
        assert "beta" in listed and "acme" not in listed
        for path in ("/w/acme/", QUEUE, "/w/acme/live"):
            page = server.get(path)
            assert page.status in (303, 401, 403) and page.headers.get("location", "/login") == "/login", path

        sign_in(server, ben)
        assert "bookkeeper" in server.get("/").text
        refused = press(server, ben, ("card", cards["proposal"]), ("choice", "approve"), ("number", "P1"))
        assert "a bookkeeper decides about the books" in refused and desk.head() == before, refused
        assert "Confirmed: CORNER SHOP" in press(server, ben, ("card", cards["entry"]), ("choice", "confirm"))

        sign_in(server, ana)
        listed = server.get("/").text
        # By what waits: acme has cards.
        assert listed.index("acme") < listed.index("beta") and "bookkeeper" not in listed
        assert "is live now" in press(server, ana, ("card", cards["proposal"]), ("choice", "approve"), ("number", "P1"))
    desk.ok("sync", "origin")
    assert fleet.fetch().head() == tip_of(fleet.shared)
