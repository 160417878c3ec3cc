"""``config_get``: settings a script may read."""

# Without annotations from __future__: each type would be a text, compiled when what a primitive takes is read.

from typing import Any, Final

from cleared.base.errors import ClearedError, Place, PrimitiveError
from cleared.primitives.context import Context
from cleared.primitives.registry.primitive import Effect, primitive
from cleared.primitives.registry.vocabulary import Json, Line
from cleared.workspace.settings.setting_lookup import get_setting

_NO_DEFAULT: Final[Any] = object()


@primitive(effect=Effect.READ, grant="config.read")
def config_get(ctx: Context, key: Line, default: Json = _NO_DEFAULT) -> Any:
    """A setting of ``config.yaml`` by dotted key, e.g. ``"thresholds.auto_confirm"``.

    A missing key is refused unless ``default`` is passed. Secrets (keys, tokens, passwords) are always refused.
    """
    try:
        return get_setting(ctx.config, key) if default is _NO_DEFAULT else get_setting(ctx.config, key, default)
    except ClearedError as e:
        raise PrimitiveError(e.message, place=e.place or Place(field="key"), remedy=e.remedy) from None
