"""What a person saw before deciding, as a digest: a decision that carries it is refused when that has changed since.

A page that was opened an hour ago must not decide about what is there now.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from cleared.base.errors import Place, PolicyError
from cleared.base.short_text import quote_text
from cleared.cards.card import Card

_PUT_OFF: Final = ("skipped_at", "skipped_by")
"""That a card was put behind the others changes nothing of what it says."""
_expected: Final[ContextVar[Mapping[str, str] | None]] = ContextVar("expected", default=None)


def digest_shown(data: Any) -> str:
    """SHA-256, in hex, of plain data."""
    return hashlib.sha256(json.dumps(data, sort_keys=True, default=_as_plain).encode()).hexdigest()


def digest_card(card: Card, record: object) -> str:
    """The digest of all that is known of a card, and of the record that it is about (None: of none)."""
    about = {name: getattr(card, name) for name in card.__struct_fields__ if name not in _PUT_OFF}
    return digest_shown([about, repr(record)])


def _as_plain(value: object) -> Any:
    return dict(value) if isinstance(value, Mapping) else repr(value)


@contextmanager
def expecting(digests: Mapping[str, str]) -> Iterator[None]:
    """Decisions that are made here are refused for what is not in ``digests``, or has another digest now.

    ``digests``: id of a card or record, or folder of a proposal → digest of it as it was shown.
    """
    token = _expected.set(digests)
    try:
        yield
    finally:
        _expected.reset(token)


def refuse_changed(name: str, title: str, digest: Callable[[], str]) -> None:
    """Raises ``PolicyError`` where the decision that is being made expects ``name`` to be as it was shown, and it is
    not. ``digest`` computes the one of now."""
    expected = _expected.get()
    if expected is not None and expected.get(name) != digest():
        raise PolicyError(
            f"{quote_text(title, 80)} has changed since it was shown; nothing was decided",
            place=Place(field="card"),
            remedy="Look at it again, then decide.",
        )


def refuse_changed_record(name: str, title: str, digest: Callable[[], str]) -> None:
    """As ``refuse_changed``, where the record itself was shown, and not a card about it."""
    if name in (_expected.get() or {}):
        refuse_changed(name, title, digest)


def require_shown(name: str, title: str, digest: str, command: str) -> None:
    """Raises ``PolicyError`` where what is being approved is not what a person was shown: whoever asks them says so, by
    ``expecting`` it. ``command``: shows it, and asks.
    """
    if _expected.get() is None:
        raise PolicyError(
            f"{quote_text(title, 80)} was not shown to a person; nothing was approved",
            remedy=f"Look at it, and say yes: {command}.",
        )
    refuse_changed(name, title, lambda: digest)
