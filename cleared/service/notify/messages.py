"""What the messages say: the daily digest of what waits for a person, and the runs that failed."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from cleared.base.clock import format_iso
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
from cleared.git import Snapshot
from cleared.service.nightly_improvement import list_findings
from cleared.service.notify.channels import Message, escape_text

_MAX_LISTED: Final = 20
_MAX_SUBJECT: Final = 150


def load_open_cards(host: Host) -> list[Card]:
    """The cards that wait for a person, oldest first."""
    with host.open_for_reading() as repo:
        return read_cards(host, Snapshot(repo, repo.read_head())).list_open()


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


def read_digest_facts(host: Host, since: datetime, standing: Mapping[str, Standing]) -> DigestFacts:
    """What there is to say ``since`` the last digest. Raises ``ClearedError`` and its like where it cannot be read."""
    return DigestFacts(
        load_open_cards(host),
        count_failed_runs(host, since),
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
    lines += ["", f"Look and decide: cleared review, in {host.root}"]
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


def failure_message(host: Host, failures: list[dict[str, str]], more: int, now: datetime) -> Message:
    """The message about failed runs: ``failures`` with their causes (run_id, agent, cause, at), and ``more`` beside."""
    total = len(failures) + more
    agents = sorted({f["agent"] for f in failures})
    who = agents[0] if len(agents) == 1 else f"{len(agents)} agents"
    subject = f"{who} failed" if total == 1 else f"{count_noun(total, 'run')} of {who} failed"
    lines: list[str] = []
    for f in failures:
        cause = f["cause"].strip().splitlines() or ["no cause is known"]
        lines += [f"{f['agent']} failed at {f['at']}:", *(f"  {line}" for line in cause[:5])]
        lines += [f"  cleared run show {f['run_id']}", ""]
    if more:
        lines += [f"and {more} more: cleared run list", ""]
    lines.append(f"The workspace is {host.root}")
    return make_message(host, "failure", subject, lines, {"failures": failures, "count": total}, now)


def make_message(
    host: Host, kind: str, summary: str, lines: list[str], data: Mapping[str, Any], now: datetime, key: str = ""
) -> Message:
    """``key``: names it for ever; empty: one of its own, made at random."""
    name = host.config.business.name
    full_data = {"workspace": str(host.root), "business": name, **data}
    message = Message(
        key or f"{kind}-{secrets.token_hex(12)}", kind, f"{name}: {summary}", tuple(lines), format_iso(now), full_data
    )
    # Redact before cutting: a secret that is cut short would not be recognised.
    message = redact_message(host, message)
    return replace(
        message, subject=escape_text(message.subject, _MAX_SUBJECT), lines=tuple(map(escape_text, message.lines))
    )


def redact_message(host: Host, message: Message) -> Message:
    """The message without any secret that the host knows."""
    redactor = host.redactor
    if not redactor:
        return message
    return replace(
        message,
        subject=redactor.redact_text(message.subject),
        lines=tuple(redactor.redact_data(message.lines)),
        data=redactor.redact_data(message.data),
    )


def _card_summary(card: Card) -> dict[str, str]:
    return {"id": card.id, "kind": card.kind, "title": card.title, "since": card.created_at}


def _list_items(items: Sequence[str]) -> list[str]:
    left = len(items) - _MAX_LISTED
    return [*(f"  {item}" for item in items[:_MAX_LISTED]), *([f"  and {left} more"] if left > 0 else [])]
