"""``bank_preview``: a bank's file that nobody described yet, understood and proposed by a session (CARD 3)."""

from __future__ import annotations

import re

from harness import take_ok
from tool_session import Session

HEAD = "Buchungstag;Text;Betrag;Saldo\n"
ROWS = """\
03.02.2025;COFFEE HOUSE;-4,50;995,50
14.02.2025;KUNDE MUELLER;1.200,00;2.195,50
25.02.2025;MIETE;-80,00;2.115,50
"""
SAVINGS = {"type": "savings", "name": "Volksbank", "ledger_account": 1020}


def test_what_it_lacks_is_proposed_and_its_next_file_is_booked_right(session: Session) -> None:
    ws = session.ws
    ws.drop("january.csv")
    ws.run("ingest")
    ws.put("import/volksbank.csv", HEAD + ROWS)
    shown = session.ok("bank_preview", file_path="import/volksbank.csv", account=SAVINGS)
    assert "| 2025-02-14  1200.00  KUNDE MUELLER  2195.50" in shown and "write: true" in shown
    assert session.overlay.files == {}
    session.ok("bank_preview", file_path="import/volksbank.csv", account=SAVINGS, write=True)
    assert list(session.overlay.files) == ["config.yaml"]
    session.ok("propose", message="Files of the Volksbank are understood.")
    take_ok(ws, "agent", "approve", "P1")
    ws.run("ingest")
    booked = {row["date"]: row for row in ws.json("journal", "list", "--month", "2025-02")}
    assert [line["account_id"] for line in booked["2025-02-14"]["lines"]] == [1020, 4010]
    assert booked["2025-02-03"]["amount"] == "4.50"
    assert "config.yaml has all that it takes" in session.ok("bank_preview", file_path="import/processed/volksbank.csv")


def test_what_a_file_does_not_say_is_asked_for_by_the_names_of_the_call(session: Session) -> None:
    session.ws.put("import/odd.csv", "Day,What,Sum\n01/02/2025,ONE,5.00\n02/03/2025,TWO,6.00\n")
    asked = session.ok("bank_preview", file_path="import/odd.csv")
    assert "known.date_format: " in asked and "known.sign: " in asked and "--" not in asked
    known = {"date_format": "%d/%m/%Y", "sign": "inverted"}
    shown = session.ok("bank_preview", file_path="import/odd.csv", known=known, account=SAVINGS)
    assert "| 2025-02-01  -5.00  ONE" in shown


def test_an_account_that_the_chart_lacks_is_named_with_what_adds_it(session: Session) -> None:
    session.ws.drop("january.csv")
    session.ws.run("ingest")
    session.ws.put("import/volksbank.csv", HEAD + ROWS)
    shown = session.ok("bank_preview", file_path="import/volksbank.csv")
    assert "There is no account 1011 in the chart" in shown
    remedy = re.search(r"cleared (accounts add 1011) NAME (--type asset)$", shown, re.M)
    assert remedy is not None
    session.ws.ok(*remedy[1].split(), "Volksbank", *remedy[2].split())
    account = {"ledger_account": 1011}
    assert "There is no" not in session.ok("bank_preview", file_path="import/volksbank.csv", account=account)


def test_what_cannot_be_is_refused(session: Session) -> None:
    session.ws.put("import/note.csv", "hello\n")
    session.failed("bank_preview", "there is no file", file_path="import/none.csv")
    session.failed("bank_preview", "import/note.csv: ", file_path="import/note.csv")
    session.ws.put("import/volksbank.csv", HEAD + ROWS)
    session.failed("bank_preview", "there is no known.limit", file_path="import/volksbank.csv", known={"limit": 1})
    session.failed("bank_preview", "no bank account", file_path="import/volksbank.csv", account={"existing": "x"})
    session.failed("bank_preview", file_path="import/volksbank.csv", account={"id": "a/../b"}, write=True)
    session.invalid("bank_preview", "known.sign", file_path="import/volksbank.csv", known={"sign": "x"})


def test_no_other_setting_of_imports_is_proposed(session: Session) -> None:
    text = session.ws.read("config.yaml").replace("  keep: git\n", "  keep: local\n")
    session.ok("write_file", file_path="config.yaml", content=text)
    session.failed("propose", "import.keep", message="x")
