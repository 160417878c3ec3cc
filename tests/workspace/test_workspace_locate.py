"""A workspace is found from anywhere inside it, and knows where everything lies."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleared.base.errors import ExitCode, UsageError, WorkspaceError
from cleared.books.ledger.book_paths import list_journal_months, locate_books
from cleared.domains.installed_domains import ManagedFiles
from cleared.workspace.location import Layout, find_workspace
from cleared.workspace.settings.config_file import load_config_file
from cleared.workspace.settings.loading import load_config


def test_it_looks_upwards_as_git_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.yaml").write_text("business:\n  name: Outer\n")
    deep = tmp_path / "books" / "2025"
    deep.mkdir(parents=True)
    assert find_workspace(deep) == tmp_path.resolve()
    monkeypatch.chdir(deep)
    assert load_config_file(find_workspace() / "config.yaml").business.name == "Outer"
    (tmp_path / "books" / "config.yaml").mkdir()  # only a file makes a workspace
    assert find_workspace(deep) == tmp_path.resolve()


@pytest.mark.parametrize("missing", [False, True])
def test_outside_of_a_workspace(tmp_path: Path, missing: bool) -> None:
    with pytest.raises(WorkspaceError) as caught:
        find_workspace(tmp_path / "none" if missing else tmp_path)
    assert caught.value.exit_code == ExitCode.UNUSABLE
    assert missing or "cleared init DIR" in str(caught.value)


def layout(books: str, root: Path = Path("/w")) -> Layout:
    return Layout(root, load_config(f"paths: {{books: {books}}}\n"))


def test_the_documented_layout() -> None:
    found = layout("books")
    paths = locate_books(found)
    assert paths.journal_path(2025, 1) == "books/2025/01/journal.csv"
    assert paths.bank_path("checking", "2025-01") == "books/bank/checking/2025-01.csv"
    assert [paths.month_path(each, "2025-01") for each in (paths.matches, paths.imports, paths.duplicates)] == [
        "books/bank/matches-2025-01.csv",
        "books/bank/imports-2025-01.csv",
        "books/bank/duplicates-2025-01.csv",
    ]
    assert paths.periods == "books/periods.csv"
    assert found.agent_path("ingest") == "agents/ingest.py"
    assert found.script_path("vendor_name") == "scripts/vendor_name.py"
    managed = ManagedFiles(found)
    assert managed.folders == ["books", "accounts", "records", "state", "queue", "logs", "agents/approvals"]
    assert managed.has_path("books/2025/01/journal.csv")
    assert not managed.has_path("agents/ingest.py")
    assert found.state_dir == Path("/w/.cleared")


def test_the_published_layout(tmp_path: Path) -> None:
    found = layout(".", tmp_path)
    (tmp_path / "2024" / "12").mkdir(parents=True)
    (tmp_path / "2024" / "12" / "journal.csv").touch()
    paths = locate_books(found)
    assert paths.journal_path(2025, 1) == "2025/01/journal.csv"
    assert paths.periods == "books/periods.csv"
    assert ManagedFiles(found).folders == [
        "books",
        "accounts",
        "2024",
        "records",
        "state",
        "queue",
        "logs",
        "agents/approvals",
    ]
    assert ManagedFiles(found).has_path("2025/01/journal.csv")
    assert list_journal_months(found) == [(2024, 12)]


@given(st.integers(1, 9999), st.integers(1, 12), st.sampled_from([".", "books", "a/b", "books/"]))
def test_a_journal_path_says_its_month(year: int, month: int, books: str) -> None:
    paths = locate_books(layout(books))
    assert paths.find_month(paths.journal_path(year, month)) == (year, month)


@pytest.mark.parametrize("path", ["books/2025/13/journal.csv", "2025/01/journal.csv", "books/bank/x.csv", ""])
def test_other_paths_are_no_journals(path: str) -> None:
    assert locate_books(layout("books")).find_month(path) is None


@pytest.mark.parametrize("name", ["../ingest", "a/b", "", "/x"])
def test_names_are_checked(name: str) -> None:
    with pytest.raises(UsageError):
        layout("books").agent_path(name)
    with pytest.raises(UsageError):
        locate_books(layout("books")).bank_path(name, "2025-01")
