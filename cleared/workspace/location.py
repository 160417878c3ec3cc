"""Where a workspace is, and where everything in it lies."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cleared.base.safe_names import require_safe_name
from cleared.workspace.settings.model import Config
from cleared.workspace.workspace_root import CONFIG_NAME as CONFIG_NAME
from cleared.workspace.workspace_root import find_workspace as find_workspace

USED_FOLDERS: Final = frozenset(
    (
        ".git",
        ".cleared",
        "import",
        "agents",
        "scripts",
        "logs",
        "queue",
        "accounts",
        "tests",
        "receipts",
        "records",
        "state",
    )
)
"""Folders at the top of a workspace, beside that of the books, that no setting may name for something else."""
_JOURNAL = re.compile(r"([0-9]{4})/(0[1-9]|1[0-2])/journal\.csv")
_MONTH = re.compile(r"[0-9]{4}-(?:0[1-9]|1[0-2])")


@dataclass(frozen=True, slots=True)
class Layout:
    """Paths of a workspace, as POSIX texts relative to its root, as git names them.

    ``paths.books`` is the folder of the journal. Where it is ``.`` (the published layout) the journals are
    ``YYYY/MM/journal.csv`` at the top, and what else belongs to the books (bank facts, periods) is in
    ``books/``: the top level keeps only folders that a person knows.
    """

    root: Path
    config: Config

    config_file = CONFIG_NAME
    chart = "accounts/chart-of-accounts.csv"
    agents_dir = "agents"
    approvals_dir = "agents/approvals"
    scripts_dir = "scripts"
    import_dir = "import"
    processed_dir = "import/processed"
    queue_dir = "queue"
    logs_dir = "logs"
    log = "logs/agent-log.csv"
    events = "logs/events.jsonl"
    imported_files = "logs/files.csv"
    state = ".cleared"

    @property
    def books_dir(self) -> str:
        """Where bank facts, matches and periods lie."""
        books = self.config.paths.books.strip("/")
        return "books" if books == "." else books

    @property
    def state_dir(self) -> Path:
        """``.cleared/``, absolute: what can be rebuilt or is only operational."""
        return self.root / self.state

    def journal_path(self, year: int, month: int) -> str:
        name = f"{year:04d}/{month:02d}/journal.csv"
        return name if self._is_flat else f"{self.books_dir}/{name}"

    def journal_month(self, path: str) -> tuple[int, int] | None:
        """Year and month if ``path`` is a journal of this workspace; the inverse of ``journal_path``."""
        if not self._is_flat:
            prefix = f"{self.books_dir}/"
            if not path.startswith(prefix):
                return None
            path = path[len(prefix) :]
        match = _JOURNAL.fullmatch(path)
        return (int(match[1]), int(match[2])) if match else None

    def list_journals(self) -> list[tuple[int, int]]:
        """Year and month of every journal in the working tree, oldest first."""
        top = self.root if self._is_flat else self.root / self.books_dir
        months = (self.journal_month(p.relative_to(self.root).as_posix()) for p in top.glob("*/*/journal.csv"))
        return sorted(month for month in months if month)

    def bank_path(self, account: str, month: str) -> str:
        """The bank facts of one account in one month, ``YYYY-MM``."""
        if not _MONTH.fullmatch(month):
            raise ValueError(f"{month!r} is not YYYY-MM")
        return f"{self.books_dir}/bank/{require_safe_name(account, 'bank account')}/{month}.csv"

    @property
    def journal_root(self) -> str:
        """The folder that holds the years; empty for the top of the workspace."""
        return "" if self._is_flat else self.books_dir

    @property
    def bank_root(self) -> str:
        return f"{self.books_dir}/bank"

    @property
    def outcomes(self) -> str:
        return f"{self.books_dir}/bank/outcomes.csv"

    @property
    def matches(self) -> str:
        return f"{self.books_dir}/bank/matches.csv"

    @property
    def imports(self) -> str:
        return f"{self.books_dir}/bank/imports.csv"

    @property
    def duplicates(self) -> str:
        return f"{self.books_dir}/bank/duplicates.csv"

    @property
    def undone(self) -> str:
        return f"{self.books_dir}/bank/undone.csv"

    @property
    def reconciliations(self) -> str:
        return f"{self.books_dir}/bank/reconciliations.csv"

    @property
    def receipts(self) -> str:
        return f"{self.books_dir}/bank/receipts.csv"

    @property
    def periods(self) -> str:
        return f"{self.books_dir}/periods.csv"

    def agent_path(self, name: str) -> str:
        """The script of an agent. Raises ``UsageError`` for a name that is not one."""
        return f"{self.agents_dir}/{require_safe_name(name, 'agent')}.py"

    def script_path(self, name: str) -> str:
        """A shared script. Raises ``UsageError`` for a name that is not one."""
        return f"{self.scripts_dir}/{require_safe_name(name, 'script')}.py"

    @property
    def _is_flat(self) -> bool:
        return self.config.paths.books.strip("/") == "."
