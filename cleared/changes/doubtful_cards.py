"""Cards that nothing vouches for: whoever can write to the repository can write a card, and what another one says.

Nothing is decided about such a card, and no run settles it, until a person says what it is worth.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable

from cleared.cards.card import Card
from cleared.cards.card_events import render_open
from cleared.cards.kinds import AGREEMENT, PROPOSAL, QUESTION
from cleared.cards.queue_files import read_opened_cards
from cleared.changes.attestation import load_approvals
from cleared.changes.consumed_events import find_unopened_cards
from cleared.changes.host import Host
from cleared.git import Repository, Snapshot

_OWN_PROOF = frozenset({PROPOSAL.name, QUESTION.name, AGREEMENT.name})
"""Kinds whose cards only point at what is judged by itself: a proposal, a ticket, what the first of two signed."""


def find_doubtful_cards(host: Host, repo: Repository, snapshot: Snapshot, cards: Iterable[Card]) -> dict[str, str]:
    """Of ``cards`` those that no run or decision of a machine that counts here opened just as they are, or that a
    line which none attests speaks against: id → why, and what to do.

    None in a clone in which nobody is trusted yet: nothing is decided there.
    """
    judged = [card for card in cards if card.record_id or not _has_own_proof(card)]
    if not judged or load_approvals(host, snapshot).identity.counts_alone:
        return {}
    doubtful = {card.id for card in _find_doubtful(host, repo, snapshot, judged)}
    return {card.id: _describe_doubt(card) for card in judged if card.id in doubtful} if doubtful else {}


def list_doubtful_openings(host: Host, repo: Repository, snapshot: Snapshot, commit: str) -> list[Card]:
    """What lines that a commit adds to the queue open, and nothing up to ``snapshot`` vouches for."""
    opened = [card for card in _read_openings(host, repo, commit) if not _has_own_proof(card)]
    return _find_doubtful(host, repo, snapshot, opened)


def _find_doubtful(host: Host, repo: Repository, snapshot: Snapshot, cards: Collection[Card]) -> list[Card]:
    unattested = find_unopened_cards(host, repo, snapshot, cards)
    signed = _list_signed_openings(host, repo, snapshot) if unattested else set()
    return [card for card in unattested if render_open(card) not in signed]


def _list_signed_openings(host: Host, repo: Repository, snapshot: Snapshot) -> set[str]:
    """What reviewers have opened, on machines that may be trusted nowhere."""
    from cleared.changes.decisions.signed_commits import list_signed_commits

    return {
        render_open(card)
        for commit in list_signed_commits(host, repo, snapshot, host.layout.queue_dir)
        for card in _read_openings(host, repo, commit.id)
    }


def _read_openings(host: Host, repo: Repository, commit: str) -> list[Card]:
    """What the lines open that a commit adds to the queue."""
    from cleared.changes.decisions.signatures import read_parents

    queue, after = host.layout.queue_dir, Snapshot(repo, commit)
    before = [Snapshot(repo, parent) for parent in read_parents(repo, commit)]
    had, opened = [each.list_entries(queue) for each in before], list[Card]()
    for path, entry in sorted(after.list_entries(queue).items()):
        if any(each.get(path) == entry for each in had):
            continue
        old = {line for each in before for line in (each.read_file(path) or b"").splitlines()}
        lines = (after.read_file(path) or b"").splitlines()
        opened += read_opened_cards(line for line in lines if line not in old)
    return opened


def _has_own_proof(card: Card) -> bool:
    """Whether nothing depends on who opened a card: what it is about is judged by itself."""
    return card.kind in _OWN_PROOF and not card.rivals and not card.record_id


def _describe_doubt(card: Card) -> str:
    who = "a run or decision of a machine that is trusted here"
    why = f"nothing shows that {who} opened it as it is"
    if card.rivals:
        why = f"{len(card.rivals) + 1} lines open it, each saying something else, and not all of them are of {who}"
    return (
        f"{why}. Where a colleague's machine did, trust that: cleared trust. Else look who did (git log -p -S"
        f"{shlex.quote(card.id)} -- queue): take that back with git, or say that it is right: cleared accept "
        "COMMIT --reason …"
    )
