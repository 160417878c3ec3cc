"""``days_between`` and ``add_days``: counting days, which scripts would otherwise do by hand."""

from __future__ import annotations

from datetime import timedelta

from cleared.base.errors import Place, PrimitiveError
from cleared.primitives.context import Context
from cleared.primitives.registry.primitive import Effect, primitive
from cleared.primitives.registry.vocabulary import Date, Whole


@primitive(effect=Effect.READ, grant="ctx.read")
def days_between(ctx: Context, first: Date, last: Date) -> int:
    """Days from ``first`` to ``last``: 0 for the same day, negative where ``last`` is the earlier one.

    Both are days as ``YYYY-MM-DD``. Of a time such as a card's ``created_at``, pass the first ten characters.
    """
    return (last - first).days


@primitive(effect=Effect.READ, grant="ctx.read")
def add_days(ctx: Context, day: Date, days: Whole) -> str:
    """The day so many days after ``day`` (before it where ``days`` is negative), as ``YYYY-MM-DD``."""
    try:
        return (day + timedelta(days=days)).isoformat()
    except OverflowError:
        raise PrimitiveError(
            f"{days} days from {day} is no day of the years 1 to 9999",
            place=Place(field="days"),
            remedy="Pass fewer days.",
        ) from None
