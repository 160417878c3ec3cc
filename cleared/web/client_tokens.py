"""Tokens of programs: made and removed by a person, compared with what a request shows."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from cleared.base.clock import format_iso
from cleared.base.errors import UsageError
from cleared.trust.person_only import refuse_in_job
from cleared.web.client_file import SCOPES, ClientFile, Clients, ClientToken, Scope

PREFIX: Final = "cleared_"
"""What a token begins with, so that a program that looks for lost secrets knows one."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")
_MOST: Final = 1_000


def add_token(file: ClientFile, name: str, scope: str, now: datetime) -> str:
    """A new token for a program of this name; it is written down nowhere. ``scope``: ``read``, or ``run`` as well. The
    caller holds the lock.

    Raises ``UsageError`` where the name is taken or none, ``PolicyError`` inside a job.
    """
    refuse_in_job()
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name[:60]!r} is no name of a program", remedy="Use letters, digits, dots, - and _.")
    wanted = next((each for each in SCOPES if each == scope), None)
    if wanted is None:
        raise UsageError(f"there is no scope {scope[:40]!r}", remedy="Choose read, or run.")
    token = PREFIX + secrets.token_urlsafe(32)
    clients = file.read_clients()
    if any(each.name == name for each in clients.tokens):
        raise UsageError(
            f"there is a token for {name} already",
            remedy=f"Remove it (cleared token remove {name}), or choose another name.",
        )
    if len(clients.tokens) >= _MOST:
        raise UsageError(f"there are {_MOST:,} tokens already", remedy="Remove some: cleared token list.")
    made = ClientToken(name, wanted, digest_token(token), format_iso(now))
    file.write_clients(replace(clients, tokens=(*clients.tokens, made)))
    return token


def remove_token(file: ClientFile, name: str) -> None:
    """The program's token counts no more; the caller holds the lock. Raises ``UsageError`` where there is none."""
    refuse_in_job()
    clients = file.read_clients()
    left = tuple(each for each in clients.tokens if each.name != name)
    if len(left) == len(clients.tokens):
        raise UsageError(f"there is no token for {name[:60]!r}", remedy="cleared token list shows them.")
    file.write_clients(replace(clients, tokens=left))


def find_token(clients: Clients, shown: str) -> ClientToken | None:
    """Whose token this is; None where it is nobody's. As fast for any wrong one."""
    digest, whose = digest_token(shown), None
    for each in clients.tokens:
        if hmac.compare_digest(each.digest, digest):
            whose = each
    return whose


def allows_scope(token: ClientToken, needed: Scope) -> bool:
    """Whether the token's scope is enough."""
    return SCOPES.index(needed) <= SCOPES.index(token.scope)


def digest_token(token: str) -> str:
    """What is kept of a token. It is random and long, so a plain digest cannot be turned back."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
