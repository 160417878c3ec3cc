"""``money_*``: exact splitting."""

from __future__ import annotations

from decimal import Decimal

from cleared.base import money
from cleared.base.errors import Place, PrimitiveError
from cleared.primitives.context import Context
from cleared.primitives.registry.primitive import Effect, primitive
from cleared.primitives.registry.vocabulary import Amount, Weight


@primitive(effect=Effect.READ, grant="money.read")
def money_allocate(ctx: Context, total: Amount, weights: list[Weight]) -> list[Decimal]:
    """Split ``total`` in proportion to ``weights``; the parts sum to it exactly (largest remainder).

    The one way to split an amount: three equal parts of 10.00 are 3.34, 3.33 and 3.33.
    """
    try:
        return money.allocate(total, weights, ctx.env.places)
    except ValueError as e:
        raise PrimitiveError(str(e), place=Place(field="weights"), remedy="Pass at least one weight above 0.") from None
