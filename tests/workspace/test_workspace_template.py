"""A new workspace has the documented tree, and the checkout itself is one."""

import csv
import subprocess
from pathlib import Path

import pytest

from cleared.base.errors import UsageError
from cleared.books.ledger.book_paths import locate_books
from cleared.changes.workspace_creation import initial_files
from cleared.workspace import template
from cleared.workspace.location import Layout
from cleared.workspace.settings.config_file import load_config_file
from cleared.workspace.settings.loading import load_config
from cleared.workspace.template import ENTITY_TYPES, read_starter_chart

TOP = Path(__file__).parents[2]
MEANINGS = {
    **{1010: "checking", 1020: "savings", 1050: "processor", 1090: "transit", 1200: "receivable", 1300: "inventory"},
    **{1500: "equipment", 1590: "depreciation", 2010: "card", 2100: "payable", 2200: "tax", 2300: "payroll"},
    **{2500: "loans", 3010: "", 3100: "", 3200: "", 3900: "opening", 4010: "", 4020: "", 4090: "returns"},
    **{4900: "other income", 5010: "", 5020: "", 5030: "uncategorised expense", 5040: "", 5050: ""},
    5060: "office supplies",
}
TYPES = {"1": "asset", "2": "liability", "3": "equity", "4": "revenue", "5": "expense"}


def rows(entity_type: str) -> dict[int, dict[str, str]]:
    return {
        int(row["account_id"]): row for row in csv.DictReader(read_starter_chart(entity_type).decode().splitlines())
    }


@pytest.mark.parametrize("entity_type", ENTITY_TYPES)
def test_charts_keep_the_meaning_of_documented_ids(entity_type: str) -> None:
    accounts = rows(entity_type)
    assert 30 <= len(accounts) <= 45
    assert list(accounts) == sorted(accounts)
    for account_id, word in MEANINGS.items():
        assert word in accounts[account_id]["account_name"].lower()
    assert accounts[5030]["tax_line"] == ""
    prefix = {"s_corp": "f1120s.", "generic": "nature."}.get(entity_type, "sched_c.")
    for account_id, row in accounts.items():
        assert row["account_type"] == TYPES[str(account_id)[0]]
        assert row["description"]
        taxed = row["account_type"] in ("revenue", "expense") and account_id != 5030
        assert row["tax_line"].startswith(prefix) if taxed else row["tax_line"] == ""
        parent = row["parent_id"]
        assert not parent or int(parent) in accounts
    assert b"\r" not in read_starter_chart(entity_type)


def test_the_checkout_is_itself_a_workspace() -> None:
    layout = Layout(TOP, load_config_file(TOP / "config.yaml"))
    assert (TOP / locate_books(layout).chart).read_bytes() == read_starter_chart(layout.config.business.entity_type)
    assert layout.config.business.entity_type == "llc_single_member"
    assert (TOP / layout.import_dir).is_dir()
    assert sorted(template.starter_files()) == [
        "agents/ingest.py",
        "agents/monthly_summary.py",
        "agents/review_reminder.py",
        "scripts/vendor_name.py",
    ]


def test_the_documented_tree() -> None:
    files = initial_files("Müller & Söhne: #1", "generic", "EUR")
    folders = {path.rpartition("/")[0] for path in files}
    assert folders >= {"agents", "scripts", "import", "import/processed", "accounts", "books", "logs", "queue"}
    assert folders >= {"rules", "templates", "tests/cases"}
    assert files["accounts/chart-of-accounts.csv"] == read_starter_chart("generic")
    text = files["config.yaml"].decode()
    business = load_config(text).business
    assert (business.name, business.entity_type, business.currency) == ("Müller & Söhne: #1", "generic", "EUR")
    assert text.count("#") == template.starter_config().count("#") + 1  # every comment, and the name's own


def test_wrong_choices_are_refused() -> None:
    with pytest.raises(UsageError, match="kind of business"):
        initial_files("x", "gmbh", "EUR")
    with pytest.raises(Exception, match="ISO 4217"):
        initial_files("x", "generic", "euro")
    with pytest.raises(Exception, match=r"business\.name"):
        initial_files("", "generic", "EUR")


def test_git_ignores_and_merges_as_meant(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        return subprocess.run(["git", "-C", tmp_path, *arguments], capture_output=True, text=True, check=False).stdout

    git("init", "-q")
    for path, data in initial_files("x", "generic", "EUR").items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    for path in ("import/a.csv", "import/card/a.csv", ".cleared/x", ".env", "receipts/a.pdf", "exports/a.csv"):
        assert git("check-ignore", path).strip() == path
    for path in ("import/.gitkeep", "import/processed/a.csv", "import/processed/.gitkeep", "books/bank/x/2025-01.csv"):
        assert git("check-ignore", path) == ""
    attributes = git(
        "check-attr", "merge", "text", "--", "books/bank/checking/2025-01.csv", "books/2025/01/journal.csv"
    )
    assert "bank/checking/2025-01.csv: merge: union" in attributes
    assert "journal.csv: merge: unspecified" in attributes
    assert attributes.count("text: unset") == 2
