"""Once a night, where ``self_improvement.enabled`` is approved, the service proposes what decisions teach."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from harness import Workspace, chase

from cleared.cli.options import open_host
from cleared.service.nightly_improvement import NightlyImprovement
from cleared.service.notify.digest import digest_message, read_digest_facts

pytestmark = pytest.mark.slow

TITLE = "P1: BLUEBIRD (money out, from 20, up to 100) → 5040 from now on, as you decided 3 of 3 times"
NIGHT = datetime.fromisoformat("2025-02-11T03:00:00+00:00")


def test_it_improves_once_a_night_where_it_is_enabled(ws: Workspace) -> None:
    ws.drop("a.csv", chase(*((f"01/0{n}/2025", f"BLUEBIRD {n}{n}", "-50.00") for n in (1, 2, 3))))
    ws.run("ingest")
    ws.ok("queue", "correct", *(f"2025-01-00{n}" for n in (1, 2, 3)), "--account", "5040")
    said: list[str] = []

    def log(event: str, text: str, *, level: str = "info", **_: object) -> None:
        said.append(text)

    def look(at: datetime) -> list[str]:
        """What is said by a service that starts at this time and looks once."""
        said.clear()
        NightlyImprovement(log).perform_if_due(open_host(ws.root), at)  # type: ignore[arg-type]
        return list(said)

    assert look(NIGHT) == [], "off until it is wanted"
    ws.config("self_improvement.enabled=true")
    assert look(NIGHT - timedelta(minutes=1)) == [], "not before three"
    assert look(NIGHT) == ["1 change proposed"]
    assert look(NIGHT + timedelta(hours=2)) == [], "once a night, also where the service starts again"
    assert [c["title"] for c in ws.cards()] == [TITLE]
    assert look(NIGHT + timedelta(days=1)) == ["1 change proposed"], "the same proposal, which waits"
    assert [c["title"] for c in ws.cards()] == [TITLE]
    ws.in_order()


def test_what_confirms_decisions_is_live_in_the_morning_where_that_is_approved(ws: Workspace) -> None:
    rows = [(f"01/0{n}/2025", f"BLUEBIRD {n}{n}", "-50.00") for n in (1, 2, 3)]
    ws.drop("a.csv", chase(*rows, ("01/09/2025", "TEA", "-3.00")))
    ws.run("ingest")
    ws.ok("queue", "correct", *(f"2025-01-00{n}" for n in (1, 2, 3)), "--account", "5020")
    ws.config("self_improvement.enabled=true", "self_improvement.approve=additive")
    said: list[str] = []
    NightlyImprovement(lambda event, text, **_: said.append(text)).perform_if_due(  # type: ignore[arg-type]
        open_host(ws.root), NIGHT
    )
    assert said == ["1 change approved as you decided"]
    assert '("BLUEBIRD", "Bluebird", 5020' in ws.read("agents/ingest.py")
    ws.in_order()


def test_the_night_names_a_branch_that_no_run_takes_and_the_digest_says_so(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cleared.gate.unused_code._LEAST_RUNS", 2)
    ws.config("self_improvement.enabled=true")
    ws.agent(
        "probe",
        'journal_add_double(date="2025-01-03", description="tea", debit_account=5020, credit_account=1010, amount="1", '
        'status="auto-confirmed")\nif len(importer_scan()) > 5:\n    ctx_log("many")\ngit_commit("post: tea")\n',
    )
    for _ in range(2):
        ws.run("probe")
    said: list[str] = []
    NightlyImprovement(lambda event, text, **_: said.append(text)).perform_if_due(  # type: ignore[arg-type]
        open_host(ws.root), NIGHT
    )
    found = "agents/probe.py: none of 2 runs came to line 7 (ctx_log('many')). Is it needed still?"
    assert said == [f"nothing new was learned; {found}"]
    for days, is_said in ((1, True), (-1, False)):
        facts = read_digest_facts(open_host(ws.root), NIGHT - timedelta(days=days), {}, {})
        message = digest_message(open_host(ws.root), facts, NIGHT)
        assert (found in "\n".join(message.lines).replace("- ", "")) is is_said, message.lines
        assert message.data["findings"] == ([found] if is_said else []), "of the nights since the last digest alone"
