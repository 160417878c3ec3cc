"""Who may decide here, as plain data."""

from __future__ import annotations

from typing import Any, Literal

from cleared.changes.decisions.authorization import find_authorization
from cleared.changes.host import Host
from cleared.trust.keys import own_key
from cleared.trust.reviewers import ReviewRules

Role = Literal["owner", "bookkeeper", "reader"]
"""An owner decides and approves, a bookkeeper decides, a reader looks."""


def find_role(host: Host, key: str) -> Role:
    """What whoever has this key may do here: as long as nobody is named, everybody is an owner."""
    with host.open_last_commit() as snapshot:
        rules = find_authorization(host, snapshot, "", "", person=False).rules
    return _name_role(rules, key)


def _name_role(rules: ReviewRules, key: str) -> Role:
    if not rules.is_restricted or key in rules.approvers:
        return "owner"
    return "bookkeeper" if key in rules.reviewers else "reader"


def list_reviewers(host: Host) -> dict[str, Any]:
    """The reviewers in force, the amount that takes two of them (digits, or None), and this user's own key.

    The key is made where there is none. Raises ``WorkspaceError`` where it lies in a wrong place or is damaged.
    """
    with host.open_last_commit() as snapshot:
        rules = find_authorization(host, snapshot, "", "", person=False).rules
    own = own_key(host.root, create=True)
    mine = own.public if own is not None else ""
    return {
        "reviewers": [
            {"name": name, "key": key, "you": key == mine, "role": _name_role(rules, key)}
            for key, name in rules.reviewers.items()
        ],
        "two_person": None if rules.two_person is None else str(rules.two_person),
        "key": mine,
        "may_decide": not rules.is_restricted or mine in rules.reviewers,
    }
