"""Seven requests of an owner (CARD, proof): replayed on all that is real but the model, within their tokens, approved;
and then what was approved does what was asked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from harness import Workspace, chase, take_ok
from mailserver import MailServer
from recorded_requests import CLOCKS, Replayed, prepare, replay
from scripted_model import KEY
from world import World

from bench.requests import BEFORE, MOST
from cleared.changes.workspace_opening import open_workspace
from cleared.service.notify.script_messages import ScriptMessages

pytestmark = pytest.mark.slow


@pytest.fixture
def server() -> Iterator[MailServer]:
    running = MailServer()
    yield running
    running.close()


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_MODEL_KEY", KEY)


def ask(ws: Workspace, name: str) -> Replayed:
    """Prepare, replay, and look at what it took: no call failed, and the tokens are within their bound."""
    prepare(ws, name)
    found = replay(ws, name)
    assert found.failed == () and found.tokens <= MOST * BEFORE[name], found
    return found


def approve(ws: Workspace, name: str) -> None:
    assert ask(ws, name).done.code == 0
    take_ok(ws, "agent", "approve", "P1")


def use_mail(ws: Workspace, server: MailServer) -> None:
    ws.config(
        "notifications.address=me@example.com",
        "notifications.smtp_host=localhost",
        f"notifications.smtp_port={server.port}",
        "notifications.smtp_security=none",
        "notifications.method=smtp",
        "notifications.daily_digest_time=23:00",
    )


def send_mails(world: World) -> None:
    """As the process of the service does between two runs."""
    ScriptMessages(open_workspace(world.ws.root, clock=world.time)).send_due_messages(world.time.at)


def test_coffee_is_booked_to_meals_by_the_next_run(ws: Workspace) -> None:
    """Row H22."""
    approve(ws, "coffee")
    ws.drop("march.csv", chase(("03/03/2025", "CORNER COFFEE", "-4.50"), ("03/04/2025", "CORNER COFFEE", "-24.00")))
    ws.run("ingest")
    booked = {row["amount"]: row for row in ws.json("journal", "list", "--month", "2025-03")}
    assert booked["4.50"]["status"] == "auto-confirmed" and booked["24.00"]["status"] == "pending-review"
    assert [line["account_id"] for line in booked["4.50"]["lines"]] == [5070, 1010]


def test_the_morning_email_comes_at_six(ws: Workspace, server: MailServer) -> None:
    use_mail(ws, server)
    approve(ws, "morning_email")
    with World(ws, "2025-02-10T20:00:00Z") as world:
        world.until("2025-02-11T05:59:00Z")
        send_mails(world)
        assert server.mails == []
        world.until("2025-02-11T06:05:00Z")
        send_mails(world)
    (mail,) = server.mails
    assert mail["Subject"].endswith("2 waiting for you")
    assert all(card["id"] in mail.get_content() for card in ws.cards())


def test_the_answer_about_march_is_true_and_changes_nothing(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEARED_CLOCK", CLOCKS["low_march"])
    found = ask(ws, "low_march")
    assert found.done.code == 0 and "Nothing was proposed." in found.done.err
    income: dict[str, float] = {}
    for row in ws.json("journal", "list", "--account", "4010"):
        income[row["date"][:7]] = income.get(row["date"][:7], 0) + float(row["amount"])
    assert income == {"2025-02": 2_700.0, "2025-03": 300.0, "2025-04": 2_700.0}
    assert "In March you earned 300.00, after 2,700.00 in February" in found.done.out
    assert not list((ws.root / "queue").glob("proposals/P*"))


def test_every_friday_the_unpaid_customers_are_named(ws: Workspace, server: MailServer) -> None:
    use_mail(ws, server)
    approve(ws, "unpaid_customers")
    with World(ws, "2025-02-12T09:00:00Z") as world:
        world.until("2025-02-14T07:59:00Z")
        send_mails(world)
        assert server.mails == []
        world.until("2025-02-14T08:05:00Z")
        send_mails(world)
    (mail,) = server.mails
    text = mail.get_content()
    assert "Bauer: 20.00, since 2025-01-08 (37 days)" in text and "Miller: 30.00" in text and "Ames" not in text


def test_the_file_of_the_new_bank_is_booked_right(ws: Workspace) -> None:
    approve(ws, "new_bank")
    ws.run("ingest")
    booked = {row["date"]: row for row in ws.json("journal", "list", "--month", "2025-02")}
    assert [line["account_id"] for line in booked["2025-02-03"]["lines"]] == [1020, 4010]
    assert [booked[day]["amount"] for day in sorted(booked)] == ["4.50", "1200.00", "80.00"]
    ws.ok("check")


def test_a_price_that_rose_by_more_than_five_percent_is_reported(ws: Workspace, server: MailServer) -> None:
    """Row A20."""
    use_mail(ws, server)
    approve(ws, "price_lists")
    with World(ws, "2025-02-10T09:00:00Z") as world:
        world.until("2025-02-10T09:05:00Z")
        ws.put("prices/acme.csv", "item,price\nbolt-8,4.42\nnut-8,1.15\nscrew,0.10\n")
        world.until("2025-02-10T09:10:00Z")
        send_mails(world)
    (mail,) = server.mails
    assert "prices/acme.csv: bolt-8 rose from 4.20 to 4.42" in mail.get_content()
    assert "nut-8" not in mail.get_content() and "paint" not in mail.get_content()


def test_a_refusal_changes_nothing(ws: Workspace) -> None:
    """Row H22."""
    found = ask(ws, "refusal")
    assert found.done.code == 1 and "nothing here can move money" in found.done.err
    assert "Nothing was proposed." in found.done.err
    assert ws.cards() == [] and ws.json("agent", "list")[0]["name"] == "ingest" and len(ws.json("agent", "list")) == 3
