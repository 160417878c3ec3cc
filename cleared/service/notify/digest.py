"""The daily digest of what waits for a person, and of what went on since the last one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from cleared.base.terminal import count_noun
from cleared.cards.age import overdue_cards
from cleared.cards.card import Card
from cleared.cards.kinds import PROPOSAL, kind_named
from cleared.changes.committed_cards import read_cards
from cleared.changes.host import Host
from cleared.changes.trace import KEEP_RUNS, TraceStore
from cleared.domains.domain import Standing
from cleared.gate.agent_stats import describe_health, read_stats
from cleared.gate.proposals.additive_approval import list_self_approved
from cleared.service.nightly_improvement import list_findings
from cleared.service.notify.channels import Message
from cleared.service.notify.messages import make_message, say_where_to_decide

_MAX_LISTED: Final = 20


def load_open_cards(host: Host) -> list[Card]:
    """The cards that wait for a person, oldest first."""
    with host.open_last_commit() as snapshot:
        return read_cards(host, snapshot).list_open()


def count_failed_runs(host: Host, since: datetime) -> Counter[str]:
    """Agent → how many of its runs ended after ``since`` and failed."""
    failed: Counter[str] = Counter()
    for run in TraceStore(host.layout.state_dir).list_runs(KEEP_RUNS):
        if run["status"] == "failed" and not run["dry_run"]:
            ended = datetime.fromisoformat(run["started_at"]) + timedelta(milliseconds=run["duration_ms"] or 0)
            failed[run["agent"]] += ended > since
    return +failed


class DigestFacts(Struct, frozen=True):
    """What a digest is about."""

    cards: list[Card]
    """The open ones, oldest first."""
    failed: Counter[str]
    """Agent → how many of its runs failed since the last digest."""
    approved: list[str]
    """What has approved itself since then, one line each."""
    standing: Mapping[str, Standing]
    """In the first digest of a month, how the records of each domain stand, by what that is called."""
    health: list[str]
    """How each agent does, one line each."""
    findings: list[str]
    """What the night found that only a person can make better, one sentence each."""

    @property
    def is_worth_sending(self) -> bool:
        is_standing = any(part.lines for part in self.standing.values())
        return bool(self.cards or self.failed or self.approved or is_standing)


def read_digest_facts(
    host: Host, since: datetime, standing: Mapping[str, Standing], pushed_failures: Mapping[str, int]
) -> DigestFacts:
    """What there is to say ``since`` the last digest. ``pushed_failures``: in a fleet, agent → how many of its runs
    failed, by what was pushed; the traces of one worker have its own only. Raises ``ClearedError`` and its like where
    it cannot be read."""
    return DigestFacts(
        load_open_cards(host),
        Counter(pushed_failures) if host.serves_all_clones else count_failed_runs(host, since),
        list_self_approved(host, since),
        standing,
        [describe_health(stats) for stats in read_stats(host)],
        list_findings(host, since.date()),
    )


def digest_message(host: Host, facts: DigestFacts, now: datetime) -> Message:
    """The daily digest."""
    cards, failed, standing = facts.cards, facts.failed, facts.standing
    kinds = Counter(card.kind for card in cards)
    proposals = [card for card in cards if card.kind == PROPOSAL.name]
    counts = [count_noun(len(cards), "card") + (" waits" if len(cards) == 1 else " wait")] if cards else []
    counts += [count_noun(failed.total(), "run") + " failed"] if failed else []
    counts += [count_noun(len(facts.approved), "change") + " approved as you decided"] if facts.approved else []
    counts = counts or ["the month before"]
    lines = [f"{', '.join(counts)}.", ""]
    for part in standing.values():
        lines += [part.heading, *_list_items(part.lines), ""] if part.lines else []
    lines += [f"{count:>5}  {kind_named(kind).meaning}" for kind, count in kinds.most_common()]
    if cards:
        lines += ["", f"The oldest waits since {cards[0].created_at[:10]}: {cards[0].title}"]
    late = overdue_cards(cards, now, host.config.review.remind_after)
    if late:
        lines += ["", f"Waiting for {host.config.review.remind_after} or longer:"]
        lines += _list_items([f"{card.created_at[:10]} {card.title}" for card in late])
    if proposals:
        lines += ["", "To approve or to reject:", *_list_items([card.title for card in proposals])]
    if facts.approved:
        lines += ["", "Live since the last digest, as you decided:", *_list_items(facts.approved)]
    if failed:
        lines += ["", "Runs that failed since the last digest:"]
        lines += _list_items([f"{agent}: {count}" for agent, count in failed.most_common()])
    if facts.health:
        lines += ["", "How agents do:", *_list_items(facts.health)]
    if facts.findings:
        lines += ["", "What last night found:", *_list_items(facts.findings)]
    lines += ["", say_where_to_decide(host)]
    data = {
        "cards": dict(kinds),
        "oldest": _card_summary(cards[0]) if cards else None,
        "overdue": [_card_summary(card) for card in late[:_MAX_LISTED]],
        "proposals": [_card_summary(card) for card in proposals[:_MAX_LISTED]],
        "failed": dict(failed),
        "approved": facts.approved,
        "health": facts.health,
        "findings": facts.findings,
        **{name: part.rows for name, part in standing.items()},
    }
    return make_message(host, "digest", ", ".join(counts), lines, data, now)


def _card_summary(card: Card) -> dict[str, str]:
    return {"id": card.id, "kind": card.kind, "title": card.title, "since": card.created_at}


def _list_items(items: Sequence[str]) -> list[str]:
    left = len(items) - _MAX_LISTED
    return [*(f"  {item}" for item in items[:_MAX_LISTED]), *([f"  and {left} more"] if left > 0 else [])]
