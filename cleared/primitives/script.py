"""``script_run``: shared scripts."""

from __future__ import annotations

from typing import Any

from cleared.primitives.context import Context
from cleared.primitives.registry.primitive import Effect, primitive
from cleared.primitives.registry.vocabulary import Json, Line


@primitive(effect=Effect.READ, grant="script.run")
def script_run(ctx: Context, name: Line, **args: Json) -> Any:
    """Run ``scripts/<name>.py`` in the same sandbox, limits and draft; gives its result.

    The keyword arguments are the script's variables. At most eight deep.
    """
    return ctx.host.run_script(name, args)
