"""What takes back an act that ``cleared queue undo`` does not: those of the domains, and those about agents and
settings."""

from __future__ import annotations

from typing import Final

from cleared.domains.domain import Act, WayBack, match_act
from cleared.domains.installed_domains import load_domains

_NO_ACT: Final = ("log:", "event:", "task:", "init:", "agree:", "recover:", "test:")
"""First lines of commits that the program makes beside decisions, and of those that decide nothing."""

_ACTS: Final = (
    Act(r"confirm: commit ", "acceptance", "It stays on record (cleared check)."),
    Act(r"void: run (\S+)", "revert", "Do again what it took back: cleared agent run, cleared import.", True),
    Act(r"agent: (\S+) disabled", "switch", "Take it back: cleared agent enable NAME."),
    Act(r"agent: (\S+) enabled", "switch", ""),
    Act(r"agent: (\S+) rolled back to ", "version", ""),
    Act(
        r"agent: P\S+ approved(?: itself)?: ",
        "version",
        "cleared agent rollback NAME, of each script in it.",
    ),
    Act(r"agent: (\S+) certified", "certificate", "It stays: it says what was tried."),
    Act(r"agent: P\S+ rejected: ", "proposal", "Propose it again: cleared agent propose."),
    Act(r"agent: P\S+ is stale", "stale", ""),
    Act(r"agent: these books ", "id", "It stays: cleared trust."),
    Act(r"config: passkey of .* added", "passkey", "Take it back: cleared passkey remove NAME."),
    Act(r"config: passkey of .* removed", "passkey", "Add it again: cleared passkey add."),
    Act(r"config: ", "setting", "Set what was there before: cleared config set KEY VALUE."),
)


def find_way_back(subject: str) -> WayBack | None:
    """What takes back the act of a commit with this first line; None where it is no act of a person.

    Of a sort that is not known it is said how to look at it.
    """
    if subject.startswith(_NO_ACT):
        return None
    acts = (*(act for domain in load_domains() for act in domain.list_acts()), *_ACTS)
    unknown = WayBack("act", "", "Look at what it changed (git show), and correct that.", is_about_records=True)
    return match_act(acts, subject) or unknown
