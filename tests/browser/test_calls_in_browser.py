"""PAGE 10 in a browser: a call of another program whose run failed is a card with what was sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from browsing import Visit, at_both_widths, find_message
from harness import Workspace
from playwright.sync_api import expect
from program_client import Program, webhook_agent
from world import World

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from collections.abc import Mapping


@at_both_widths
def test_a_failed_call_is_a_card_with_its_body(visit: Visit, posted: Workspace, device: Mapping[str, Any]) -> None:
    """What came after it has had its run meanwhile; run again once the cause is mended, it is done."""
    posted.config("triggers.retries=0")
    program = Program(visit.server, secret=webhook_agent(posted))
    posted.put("agents/orders.py", '"""\nname: orders\ntrigger: webhook\n"""\n7 / ctx_event()["payload"]["order"]\n')
    posted.commit("agents", *posted.approve("agents/orders.py"), message="approve")
    assert [program.hook(f"m{n}", {"order": n})[0] for n in (0, 1)] == [202, 202]
    with World(posted) as world:
        world.until(world.time.at)
        assert world.keys("orders") == ["hook/m1"]
    [card] = [card["id"] for card in posted.cards() if card["kind"] == "failed_run"]
    page = visit.open(f"/queue?card={card}", **device)
    expect(page.get_by_text("webhook with order 0")).to_be_visible()
    posted.put("agents/orders.py", posted.read("agents/orders.py").replace("7 / ", "7 - "))
    posted.commit("agents", *posted.approve("agents/orders.py"), message="approve")
    page.get_by_role("button", name="Run it again now").click()
    expect(find_message(page, "orders")).to_be_visible()
    assert [each for each in posted.cards() if each["id"] == card] == []
    visit.assert_clean()
