"""How decisions about the books are taken back where ``cleared queue undo`` does not."""

from __future__ import annotations

from typing import Final

from cleared.base.file_source import FileSource
from cleared.books.staged_books import open_books
from cleared.domains.domain import Act
from cleared.workspace.location import Layout


def _is_open_again(layout: Layout, then: FileSource, now: FileSource) -> bool:
    """Whether the period that a commit closed is open by now."""
    closed, through = (open_books(layout, each)[0].periods.closed_through for each in (now, then))
    return closed is None or through is None or through > closed


BOOK_ACTS: Final = (
    Act(r"close: through ", "period", "Reopen it first: cleared period reopen DATE --reason …", True, _is_open_again),
    Act(r"close: reopened from ", "period", "", True),
    Act(r"void: import of ", "import", "Import the file again: cleared import FILE.", True),
    Act(
        r"bootstrap: ",
        "bootstrap",
        "Void what it posted: cleared journal list, cleared journal void ID --reason …",
        True,
    ),
    Act(
        r"confirm: (\d+) reconciled on ([\d-]+): ",
        "reconciliation",
        "cleared reconcile ACCOUNT --date DATE --withdraw REASON",
    ),
    Act(r"confirm: (\d+) of ([\d-]+) is not reconciled any more", "reconciliation", ""),
    Act(r"confirm: kept ", "receipt", "Take it back: cleared receipt remove NAME."),
    Act(r"correct: removed the receipt ", "receipt", ""),
    Act(r"confirm: (\S+) has the receipt ", "link", "Take it back: cleared receipt unlink NAME ENTRY."),
    Act(r"correct: (\S+) has not the receipt ", "link", ""),
    Act(r"accounts: add (\d+)", "account", "Take it back: cleared accounts close N."),
    Act(r"accounts: rename ", "account name", "Rename it again: cleared accounts rename N NAME."),
    Act(r"accounts: close (\d+)", "closed account", "Take it back: cleared accounts reopen N."),
    Act(r"accounts: reopen (\d+)", "closed account", ""),
)


def list_acts() -> tuple[Act, ...]:
    """All of them."""
    return BOOK_ACTS
