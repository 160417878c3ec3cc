"""What takes back an act that ``cleared queue undo`` does not: known by the first line of the act's commit."""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class WayBack(NamedTuple):
    """``name``: of what was acted on, among acts of one ``kind``. ``remedy``: the command; empty where this act itself
    took back another one of that kind and name, or is none that a person made."""

    kind: str
    name: str
    remedy: str

    @property
    def is_about_books(self) -> bool:
        """Whether decisions before it rest on the books as it left them."""
        return self.kind in ("period", "import", "bootstrap", "act")


_NO_ACT: Final = ("log:", "event:", "task:", "init:", "agree:", "recover:", "test:")
"""First lines of commits that the program makes beside decisions, and of those that decide nothing."""

_ACTS: Final = tuple(
    (re.compile(pattern), kind, remedy)
    for pattern, kind, remedy in (
        (r"close: through ", "period", "Reopen it first: cleared period reopen DATE --reason …"),
        (r"close: reopened from ", "period", ""),
        (r"void: import of ", "import", "Import the file again: cleared import FILE."),
        (
            r"bootstrap: ",
            "bootstrap",
            "Void what it posted: cleared journal list, cleared journal void ID --reason …",
        ),
        (
            r"confirm: (\d+) reconciled on ([\d-]+): ",
            "reconciliation",
            "cleared reconcile ACCOUNT --date DATE --withdraw REASON",
        ),
        (r"confirm: (\d+) of ([\d-]+) is not reconciled any more", "reconciliation", ""),
        (r"confirm: kept ", "receipt", "cleared receipt remove NAME"),
        (r"correct: removed the receipt ", "receipt", ""),
        (r"confirm: (\S+) has the receipt ", "link", "cleared receipt unlink NAME ENTRY"),
        (r"correct: (\S+) has not the receipt ", "link", ""),
        (r"confirm: commit ", "acceptance", "It stays on record (cleared journal check)."),
        (r"accounts: add (\d+)", "account", "cleared accounts close N"),
        (r"accounts: rename ", "account name", "Rename it again: cleared accounts rename N NAME."),
        (r"accounts: close (\d+)", "closed account", "cleared accounts reopen N"),
        (r"accounts: reopen (\d+)", "closed account", ""),
        (r"agent: (\S+) disabled", "switch", "cleared agent enable NAME"),
        (r"agent: (\S+) enabled", "switch", ""),
        (r"agent: (\S+) rolled back to ", "version", ""),
        (r"agent: P\S+ approved: ", "version", "cleared agent rollback NAME, for each script that it changed."),
        (r"agent: P\S+ rejected: ", "proposal", "Propose it again: cleared agent propose."),
        (r"agent: P\S+ is stale", "stale", ""),
        (r"agent: these books ", "id", "It stays: cleared trust."),
        (r"config: passkey of .* added", "passkey", "cleared passkey remove NAME"),
        (r"config: passkey of .* removed", "passkey", "Add it again: cleared passkey add."),
        (r"config: ", "setting", "Set what was there before: cleared config set KEY VALUE."),
    )
)


def find_way_back(subject: str) -> WayBack | None:
    """What takes back the act of a commit with this first line; None where it is no act of a person.

    Of a sort that is not known it is said how to look at it.
    """
    if subject.startswith(_NO_ACT):
        return None
    for pattern, kind, remedy in _ACTS:
        if match := pattern.match(subject):
            return WayBack(kind, " ".join(match.groups()), remedy)
    return WayBack("act", "", "Look at what it changed (git show), and correct that.")
