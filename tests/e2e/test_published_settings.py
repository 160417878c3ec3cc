"""The configuration of the published design, key by key as that has it: it works, or says what is missing."""

from __future__ import annotations

import pytest
from harness import CARD_HEADER, Workspace, chase
from mailserver import MailServer

PUBLISHED = """\
business:
  name: "Harbor Consulting LLC"
  entity_type: "llc_single_member"
  tax_year_end: "12-31"
  currency: "USD"

fiscal:
  start_month: 1

bank_accounts:
  - id: "chase_business"
    name: "Chase Business Checking"
    type: "checking"
    csv_format: "chase"

agent:
  schedule: "0 6 * * *"
  watch_dir: "./import"
  auto_commit: true

thresholds:
  auto_confirm: 0.95
  high_confidence: 0.90
  review: 0.70
  anomaly_stddev: 2.0

llm:
  provider: "anthropic"
  model: "a-model-of-tomorrow-20290101"

git:
  author_name: "Cleared Agent"
  author_email: "agent@example.com"

self_improvement:
  enabled: true
  max_changes_per_night: 20
  cooldown_hours: 24
  auto_revert_on:
    review_queue_spike: 2.0
    invariant_violations: 1
    error_rate_increase: 0.5

notifications:
  method: "email"
  address: "owner@example.com"
  daily_digest_time: "06:00"
"""


@pytest.fixture
def published(ws: Workspace) -> Workspace:
    ws.put_config(PUBLISHED)
    return ws


def test_a_bank_account_names_the_format_of_its_bank(published: Workspace) -> None:
    """``chase`` is the one of Chase for the account's type."""
    ws = published
    assert ws.json("bank", "list")[0]["format"] == "chase_checking"
    ws.drop("january.csv")
    assert ws.run("ingest")["result"]["imported"] == 4
    card = '\n  - id: "card"\n    type: credit_card\n    ledger_account: 2010\n    csv_format: chase\n\nagent:'
    ws.put_config(PUBLISHED.replace("\nagent:", card))
    ws.drop("card.csv", f"{CARD_HEADER}01/20/2025,01/21/2025,GITHUB *PRO,A,Sale,-4.00,\n")
    ws.drop("february.csv", chase(("02/03/2025", "GITHUB *PRO", "-4.00")))
    assert ws.run("ingest")["result"]["imported"] == 2
    assert [row["balance"] for row in ws.json("journal", "balance", "2010")] == ["-4.00"]
    assert ws("agent", "check", "ingest").code == 0, "it is rehearsed over files of both formats"
    ws.in_order()


def test_mail_without_a_server_waits_and_the_command_is_named(published: Workspace) -> None:
    ws = published
    command = "no mail server is set: cleared config set notifications.smtp_host HOST"
    assert f"notifications are not sent: {command}" in ws.ok("status").out
    assert f"notifications.method is email, and {command}" in ws("doctor").out
    ws.agent("tells", 'notify_send("Good morning", "Nothing waits.")')
    assert f"1 message not sent yet ({command})" in ws.ok("agent", "run", "tells").err
    ws.ok("config", "set", "notifications.smtp_host", "localhost")
    assert "notifications are not sent" not in ws.ok("status").out


def test_mail_goes_out_once_its_server_is_set(published: Workspace) -> None:
    ws = published
    ws.agent("tells", 'notify_send("Good morning", "Nothing waits.")')
    server = MailServer()
    try:
        for key, value in (("host", "localhost"), ("port", str(server.port)), ("security", "none")):
            ws.ok("config", "set", f"notifications.smtp_{key}", value)
        assert "1 message sent" in ws.ok("agent", "run", "tells").err
        assert [to for _, to in server.envelopes][:1] == [["TO:<owner@example.com>"]]
    finally:
        server.close()


def test_the_price_of_a_model_is_set_by_a_command(published: Workspace) -> None:
    ws = published
    model = "a-model-of-tomorrow-20290101"
    shown = ws("llm", "check")
    assert f"cleared config set llm.prices.{model} '{{ input: 0, output: 0 }}'" in shown.err + shown.out
    ws.ok("config", "set", f"llm.prices.{model}", "{ input: 3, output: 15 }")
    assert ws.json("config", "get", f"llm.prices.{model}")["output"] == "15"
    assert "$3.00 in" in ws("llm", "check").out
    assert "llm.prices" in ws.git("log", "-1", "--format=%s")
