"""Tickets of runs that wait for an answer, and the answers, signed: the card that holds them is a file that anybody may
have written.

A ticket says all that the run is taken up with: workspace, card, run, script, event, time, seed, question, what its
answers are and what becomes of it in time. Both are signed with the key of a machine's runs, which approves nothing; an
answer with a reviewer's, where there are such.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict, replace

from cleared.trust.approval_record import canonical_digest
from cleared.trust.keys import Key, verify_signature

_VERSION: Final = 1
_MAX_TEXT: Final = 100_000


class Ticket(Struct, frozen=True, eq=False):
    """What a waiting run is, by the machine that ran it. Times are UTC, ISO 8601."""

    workspace: str
    card: str
    run: str
    path: str
    digest: str
    """``sha256:…`` of the script's bytes."""
    event: Mapping[str, Any]
    clock: str
    seed: str
    place: str
    """Which question of the run it is, and what it asks; see ``primitives.queue.Question.key``."""
    question: str
    choices: tuple[str, ...]
    default: str | None
    on_timeout: str
    due: str
    answers: Mapping[str, str]
    """Those that the run had so far, by their place."""
    origin: str
    """The clone that asked, which acts on it by itself."""
    shown: str
    """Digest of everything else on the card: what a person decides by."""
    by: str
    key: str = ""
    signature: str = ""

    def signed_bytes(self) -> bytes:
        """What is signed."""
        data = self.to_dict()
        del data["signature"]
        return _canonical_bytes("ticket", data)

    @property
    def is_genuine(self) -> bool:
        """Whether the signature is that of the key it names."""
        return bool(self.key) and verify_signature(self.key, self.signature, self.signed_bytes())

    def to_dict(self) -> dict[str, Any]:
        """As the card keeps it."""
        return asdict(self) | {"choices": list(self.choices)}


_TEXTS: Final = tuple(
    name for name in Ticket.__struct_fields__ if name not in ("event", "choices", "default", "answers", "signature")
)


def sign_ticket(key: Key, ticket: Ticket) -> Ticket:
    """The ticket, signed."""
    unsigned = replace(ticket, key=key.public, signature="")
    return replace(unsigned, signature=key.sign(unsigned.signed_bytes()))


def parse_ticket(data: Any) -> Ticket:
    """The inverse of ``Ticket.to_dict``. Raises ``ValueError`` for anything else."""
    try:
        ticket = Ticket(**{**data, "choices": tuple(data["choices"])})
        texts = [getattr(ticket, name) for name in _TEXTS]
        texts += [ticket.signature, *ticket.choices, *ticket.answers.values()]
        if not all(isinstance(text, str) and len(text) <= _MAX_TEXT for text in texts):
            raise ValueError("a field is not a text, or too long")
        if ticket.default is not None and ticket.default not in ticket.choices:
            raise ValueError("the default is not one of the choices")
        if not isinstance(ticket.event, dict) or not isinstance(ticket.answers, dict):
            raise ValueError("not a map")
        if ticket.seed != ticket.run:
            raise ValueError("a run's seed is its id")
        for time in (ticket.clock, ticket.due):
            if datetime.fromisoformat(time).tzinfo is None:
                raise ValueError("a time without its zone")
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"not a ticket: {error}") from None
    return ticket


# -- answers ----------------------------------------------------------------------------------------------------------


def sign_answer(key: Key, workspace: str, card: str, ticket: Any, at: str, by: str, says: str) -> dict[str, str]:
    """What a line that settles a question carries. ``ticket``: as the card keeps it, whatever it is."""
    return {"key": key.public, "signature": key.sign(_answer_bytes(workspace, card, ticket, at, by, says, key.public))}


def is_signed_answer(line: Mapping[str, Any], workspace: str, card: str, ticket: Any) -> bool:
    """Whether the line that settles a question is signed with the key it names, for this question."""
    texts = [line.get(name) for name in ("at", "by", "resolution", "key", "signature")]
    if not all(isinstance(text, str) for text in texts):
        return False
    at, by, says, key, signature = map(str, texts)
    return verify_signature(key, signature, _answer_bytes(workspace, card, ticket, at, by, says, key))


def _answer_bytes(workspace: str, card: str, ticket: Any, at: str, by: str, says: str, key: str) -> bytes:
    return _canonical_bytes(
        "answer",
        {
            "workspace": workspace,
            "card": card,
            "ticket": canonical_digest(ticket),
            "at": at,
            "by": by,
            "says": says,
            "key": key,
        },
    )


def _canonical_bytes(what: str, data: Mapping[str, Any]) -> bytes:
    """No signature of the one is one of the other, nor of a record of approval."""
    text = json.dumps({"what": what, "version": _VERSION, **data}, sort_keys=True, separators=(",", ":"))
    return text.encode("ascii")
