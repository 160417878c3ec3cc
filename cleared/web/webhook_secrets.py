"""Secrets of webhooks: made and removed by a person; what a call's signature is compared with (Standard Webhooks)."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from cleared.base.clock import format_iso
from cleared.base.errors import UsageError
from cleared.changes.host import Host
from cleared.git import Snapshot
from cleared.sandbox.trigger_kinds import WEBHOOK
from cleared.triggers.agent_triggers import read_header
from cleared.trust.person_only import refuse_in_job
from cleared.web.client_file import ClientFile, WebhookSecret
from cleared.workspace.surroundings import read_checkout

_SECRET_BYTES: Final = 32
_MOST: Final = 1_000


def add_webhook(host: Host, agent: str) -> WebhookSecret:
    """A new secret for calls that start this agent; earlier ones go on counting, so that a sender can change over.

    Raises ``UsageError`` where the agent's committed script is not started by webhooks, ``PolicyError`` inside a job.
    """
    refuse_in_job()
    with host.open_for_writing("webhook add") as repo:
        refuse_other_triggers(host, Snapshot(repo, repo.read_head()), agent)
        file = ClientFile(host.root)
        clients = file.read_clients()
        if len(clients.webhooks) >= _MOST:
            raise UsageError(f"there are {_MOST:,} secrets already", remedy="Remove some: cleared webhook list.")
        secret = "whsec_" + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode("ascii")
        made = WebhookSecret(secrets.token_hex(4), agent, secret, format_iso(host.clock.now()))
        file.write_clients(replace(clients, webhooks=(*clients.webhooks, made)))
    return made


def remove_webhooks(host: Host, which: str) -> list[WebhookSecret]:
    """Remove the secret with this id, or all of an agent. Raises ``UsageError`` where there is none."""
    refuse_in_job()
    with host.open_for_writing("webhook remove"):
        file = ClientFile(host.root)
        clients = file.read_clients()
        gone = [each for each in clients.webhooks if which in (each.id, each.agent)]
        if not gone:
            raise UsageError(f"there is no webhook {which[:60]!r}", remedy="cleared webhook list shows them.")
        file.write_clients(replace(clients, webhooks=tuple(each for each in clients.webhooks if each not in gone)))
    return gone


def refuse_other_triggers(host: Host, snapshot: Snapshot, agent: str) -> None:
    """Raises ``UsageError`` where the committed script of this name is not started by webhooks."""
    path = host.layout.agent_path(agent)
    data = snapshot.read_file(path)
    if data is None and (host.root / path).is_file():
        raise UsageError(
            f"the agent {agent[:60]!r} is not approved yet",
            remedy=f"Have it checked and approved: cleared agent propose {agent}.",
        )
    header = read_header(data, path)[0] if data is not None else None
    if header is None or WEBHOOK.name not in header.triggers:
        what = "there is no agent" if data is None else "webhooks do not start the agent"
        raise UsageError(
            f"{what} {agent[:60]!r}", remedy=f"Write `trigger: {WEBHOOK.name}` into its header; approve it."
        )


@dataclass
class CheckedAgents:
    """The agents that webhooks start, as far as they were asked for, in one commit. Thread-safe.

    To open the repository takes longer than all else that a call needs, so that is done once a commit.
    """

    _commit: str = ""
    _agents: frozenset[str] = frozenset()

    def refuse_other_triggers(self, host: Host, agent: str) -> None:
        """As the function, of the commit that is checked out. Raises ``UsageError``."""
        checkout = read_checkout(host.root)
        if checkout is not None and checkout.commit == self._commit and agent in self._agents:
            return
        with host.open_for_reading() as repo:
            commit = repo.read_head()
            refuse_other_triggers(host, Snapshot(repo, commit), agent)
        known = self._agents if commit == self._commit else frozenset[str]()
        self._commit, self._agents = commit, known | {agent}


def find_signer(known: Iterable[WebhookSecret], body: bytes, headers: Mapping[str, str]) -> WebhookSecret | None:
    """The secret with which this call was signed, within the last five minutes; None where it was none of these."""
    from standardwebhooks import Webhook, WebhookVerificationError

    for each in known:
        try:
            Webhook(each.secret).verify(body, dict(headers), json_parse=False)
        except (WebhookVerificationError, ValueError):  # the library does not catch what is malformed
            continue
        return each
    return None
