"""What a decision does to the records of a domain, in a form that shows whether two people agreed to the same."""

from __future__ import annotations

from collections.abc import Hashable
from decimal import Decimal

from msgspec import Struct


class Effect(Struct, frozen=True):
    """One thing that a draft or a commit does, and that may take a reviewer's right, or two reviewers."""

    mark: str
    """Equal where two people mean the same: ids of new records, who decided and the words of a reason are left out."""
    weight: Decimal | None
    """The amount that it is about; None: more than any."""
    record: str = ""
    """The id of the record that it is about; empty where that has none of its own."""
    plural: str = ""
    """What several of such are called that have no id: ``bank lines``."""
    outcome: Hashable = None
    """What is there afterwards, whatever was before; None: the mark says it."""
    is_decided: bool = False
    """Whether it is what only a person does."""
    is_settled: bool = False
    """Whether it is what no run may do where it takes two reviewers."""
