"""What the messages say, without any secret: the runs that failed. ``digest`` has the daily one."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from msgspec.structs import replace

from cleared.base.clock import format_iso
from cleared.base.terminal import count_noun
from cleared.changes.host import Host
from cleared.service.notify.channels import Message, escape_text

_MAX_SUBJECT: Final = 150


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
    lines.append(f"The workspace is {name_workspace(host)}")
    return make_message(host, "failure", subject, lines, {"failures": failures, "count": total}, now)


def name_workspace(host: Host) -> str:
    """What a person knows it by: its folder, or its name where a fleet serves it; no folder of a worker."""
    return host.root.name if host.serves_all_clones else str(host.root)


def say_where_to_decide(host: Host) -> str:
    """The line of a message that says where its cards are decided."""
    if host.serves_all_clones:
        return f"Look and decide: the page of your fleet, or cleared review in a clone of {host.root.name}"
    return f"Look and decide: cleared review, in {host.root}"


def make_message(
    host: Host, kind: str, summary: str, lines: list[str], data: Mapping[str, Any], now: datetime, key: str = ""
) -> Message:
    """``key``: names it for ever; empty: one of its own, made at random."""
    name = host.config.business.name
    full_data = {"workspace": name_workspace(host), "business": name, **data}
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
